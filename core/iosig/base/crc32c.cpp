#include "iosig/base/crc32c.h"

#include <array>

namespace iosig {
namespace {

constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> steps{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t step = byte;
    for (int bit = 0; bit < 8; ++bit) step = (step >> 1) ^ ((step & 1) != 0 ? 0x82f63b78u : 0u);
    steps[byte] = step;
  }
  return steps;
}();

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace iosig
