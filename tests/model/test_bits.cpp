// Bits are read as they were written, and the end of the bytes is noticed.
#include <doctest/doctest.h>

#include <bit>
#include <random>

#include "iosig/model/bits.h"

using namespace iosig;

TEST_CASE("fields of any width are read as they were written") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<std::uint64_t, unsigned>> fields;
    std::vector<std::uint8_t> bytes;
    BitWriter writer(bytes);
    std::size_t bits = 0;
    for (int n = 0; n < 50; ++n) {
      const auto width = static_cast<unsigned>(random() % 65);
      fields.emplace_back(width == 0 ? 0 : random() >> (64 - width), width);
      writer.put(fields.back().first, width);
      bits += width;
    }
    writer.end();
    BitReader reader(bytes);
    for (const auto& [value, width] : fields) REQUIRE(reader.take(width) == value);
    CHECK(reader.taken() == (bits + 7) / 8);
    CHECK(reader.taken() == bytes.size());
    CHECK_FALSE(reader.is_past_end());
    CHECK(reader.take(64) == 0);
    CHECK(reader.is_past_end());
  }
}

TEST_CASE("the end is passed with the first bit behind the last byte") {
  const std::vector<std::uint8_t> bytes = {0xff, 0x80};
  BitReader reader(bytes);
  CHECK(reader.take(16) == 0x80ff);
  CHECK_FALSE(reader.is_past_end());
  CHECK(reader.take(1) == 0);
  CHECK(reader.is_past_end());
  CHECK(BitReader().take(0) == 0);
  CHECK_FALSE(BitReader().is_past_end());
}

TEST_CASE("a short number after its zeros is taken at any place; others are left") {
  for (unsigned before = 0; before < 20; ++before)
    for (unsigned more = 0; more < 40; ++more) {
      const std::uint64_t value = (std::uint64_t{1} << more) | (0x5a5a5a5a5a & ((std::uint64_t{1} << more) - 1));
      std::vector<std::uint8_t> bytes;
      BitWriter writer(bytes);
      writer.put(0, before);
      writer.put(std::uint64_t{1} << more, more + 1);
      writer.put(value - (std::uint64_t{1} << more), more);
      writer.put(5, 3);
      writer.end();
      BitReader reader(bytes);
      (void)reader.take(before);
      const std::uint64_t taken = reader.take_short_natural();
      CHECK(taken == (more <= 27 ? value : 0));
      const std::uint64_t next = reader.take(taken > 0 ? 3 : more + 1);
      CHECK(next == (taken > 0 ? 5 : std::uint64_t{1} << more));
    }
  BitReader nothing;
  CHECK(nothing.take_short_natural() == 0);
  CHECK(nothing.taken() == 0);
}
