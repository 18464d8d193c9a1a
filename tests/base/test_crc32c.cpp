// CRC-32C against the vectors of RFC 3720 and a bit by bit division.
#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "iosig/base/crc32c.h"

using iosig::crc32c;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint32_t bit_by_bit(std::span<const std::uint8_t> bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const std::uint8_t byte : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_odd = ((rest ^ (byte >> bit)) & 1) != 0;
      rest = (rest >> 1) ^ (is_odd ? 0x82f63b78u : 0u);
    }
  return ~rest;
}

Bytes pseudo_random(std::size_t count) {
  Bytes bytes(count);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

}  // namespace

TEST_CASE("the vectors of RFC 3720, appendix B.4") {
  const std::string_view digits = "123456789";
  CHECK(crc32c({reinterpret_cast<const std::uint8_t*>(digits.data()), digits.size()}) == 0xe3069283);
  CHECK(crc32c(Bytes(32, 0)) == 0x8a9136aa);
  CHECK(crc32c(Bytes(32, 0xff)) == 0x62a8ab43);
  Bytes rising(32);
  for (std::size_t n = 0; n < rising.size(); ++n) rising[n] = static_cast<std::uint8_t>(n);
  CHECK(crc32c(rising) == 0x46dd794e);
}

TEST_CASE("all ways, sizes and places agree with a bit by bit division") {
  const Bytes bytes = pseudo_random(70'000);
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 7)
    for (std::size_t from = 0; from < 9 && from + size <= bytes.size(); ++from) {
      const auto part = std::span(bytes).subspan(from, size);
      const std::uint32_t expected = bit_by_bit(part);
      REQUIRE(crc32c(part) == expected);
      for (const iosig::Crc32cWay way : iosig::crc32c_ways()) REQUIRE(~way(part, 0xffffffff) == expected);
    }
}

TEST_CASE("a checksum continues, and two are joined") {
  const Bytes bytes = pseudo_random(40'000);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 1 + cut / 3) {
    const auto first = std::span(bytes).first(cut), second = std::span(bytes).subspan(cut);
    CHECK(crc32c(second, crc32c(first)) == whole);
    CHECK(iosig::joined_crc32c(crc32c(first), crc32c(second), second.size()) == whole);
  }
}
