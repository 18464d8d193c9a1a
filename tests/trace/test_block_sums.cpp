#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "iosig/trace/block_sums.h"
#include "part_maker.h"

using namespace iosig::trace;
using namespace iosig::trace::test;

namespace {

std::vector<std::byte> written(const BlockSums& sums) {
  std::vector<std::byte> bytes(max_sums_bytes);
  ByteWriter out{bytes.data()};
  write_sums(sums, out);
  bytes.resize(static_cast<std::size_t>(out.at - bytes.data()));
  return bytes;
}

bool sum(const std::vector<Slot>& slots, BlockSums& sums) {
  const auto fields = std::make_unique<BlockFields>();
  const BlockTraits traits = take_apart(slots, Rounder(1), *fields);
  return sum_calls(slots, *fields, traits, sums);
}

}  // namespace

TEST_CASE("block sums: the middle of a bin is within 6.25 % of its numbers") {
  for (unsigned bit = 0; bit < 64; ++bit)
    for (const std::uint64_t below : {0, 1, 5})
      for (const std::uint64_t ticks : {(std::uint64_t{1} << bit) + below, (std::uint64_t{1} << bit) * 2 - 1 - below}) {
        const unsigned bin = duration_bin(ticks);
        REQUIRE(bin < duration_bins);
        REQUIRE(middle_of_duration_bin(bin) == doctest::Approx(static_cast<double>(ticks)).epsilon(0.0625));
      }
}

TEST_CASE("block sums: the longest ones fit into their room") {
  // Eight kinds of calls, with durations that are all in bins of their own, and numbers of full length.
  std::vector<Slot> slots;
  const auto sums = std::make_unique<BlockSums>();
  for (std::uint32_t n = 0; n < max_slots; ++n) {
    Slot slot = call(n + 1, n % 2 == 0 ? Call::pread : Call::pwrite);
    slot.file = UINT32_MAX - n % 8;
    slot.start = n;
    slot.end = slot.start + static_cast<std::uint64_t>(middle_of_duration_bin(n * 7 % 480 + 15));
    slot.offset = INT64_MAX - n;
    slot.result = INT64_MAX / 600;
    slots.push_back(slot);
  }
  REQUIRE(sum(slots, *sums));
  CHECK(sums->kinds == 8);
  CHECK(written(*sums).size() < max_sums_bytes);
  slots.back().file = 1;
  CHECK_FALSE(sum(slots, *sums));
}

TEST_CASE("block sums: bytes that were not written are refused, never followed beyond their end") {
  const auto sums = std::make_unique<BlockSums>(), read = std::make_unique<BlockSums>();
  REQUIRE(sum(calls(1, 100), *sums));
  std::vector<std::byte> bytes = written(*sums);
  REQUIRE(read_sums(bytes, *read));
  CHECK(written(*read) == bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(read_sums(std::span(bytes).first(size), *read));
  for (std::byte& byte : bytes)
    for (unsigned bits = 1; bits < 256; ++bits) {
      byte ^= static_cast<std::byte>(bits);
      if (read_sums(bytes, *read)) REQUIRE(written(*read).size() <= max_sums_bytes);
      byte ^= static_cast<std::byte>(bits);
    }
}
