#include "iosig/base/crc32c.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

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

std::uint32_t by_table(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  return crc;
}

// A checksum is a polynomial over GF(2) modulo that of Castagnoli; bit 31 is the coefficient of x^0. Bytes that follow
// multiply it by x^8 each.

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000u) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? 0x82f63b78u : 0u);  // times x
  }
  return sum;
}

/// Returns x^(8 bytes).
constexpr std::uint32_t shift_by(std::uint64_t bytes) {
  std::uint32_t power = 0x80000000u, square = 0x00800000u;  // 1, x^8
  for (; bytes != 0; bytes >>= 1, square = product(square, square))
    if ((bytes & 1) != 0) power = product(power, square);
  return power;
}

#ifdef __x86_64__
/// Three parts of `part` bytes each at the same time: an instruction takes three cycles, but one can begin in each.
template <std::size_t part>
__attribute__((target("sse4.2"))) std::uint32_t three_parts(const std::uint8_t* bytes, std::uint32_t crc) {
  constexpr std::uint32_t by_one = shift_by(part), by_two = shift_by(2 * part);
  std::uint64_t first = crc, second = 0, third = 0;
  for (std::size_t at = 0; at < part; at += sizeof(std::uint64_t)) {
    std::uint64_t words[3];
    for (std::size_t n = 0; n < 3; ++n) std::memcpy(&words[n], bytes + at + n * part, sizeof words[n]);
    first = _mm_crc32_u64(first, words[0]);
    second = _mm_crc32_u64(second, words[1]);
    third = _mm_crc32_u64(third, words[2]);
  }
  return product(by_two, static_cast<std::uint32_t>(first)) ^ product(by_one, static_cast<std::uint32_t>(second)) ^
         static_cast<std::uint32_t>(third);
}

/// With the processor's instruction: 8 bytes in 3 cycles, or in one where there are many.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  constexpr std::size_t many = 4096, some = 512;
  for (; bytes.size() >= 3 * many; bytes = bytes.subspan(3 * many)) crc = three_parts<many>(bytes.data(), crc);
  for (; bytes.size() >= 3 * some; bytes = bytes.subspan(3 * some)) crc = three_parts<some>(bytes.data(), crc);
  std::uint64_t word = 0, state = crc;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  crc = static_cast<std::uint32_t>(state);
  for (const std::uint8_t byte : bytes) crc = _mm_crc32_u8(crc, byte);
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~by_instruction(bytes, ~before);
#endif
  return ~by_table(bytes, ~before);
}

std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return product(shift_by(second_bytes), first) ^ second;
}

}  // namespace iosig
