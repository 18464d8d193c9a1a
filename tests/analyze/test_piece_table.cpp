// The packed table of pieces against a plain search, and against bytes that were made to deceive.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "iosig/analyze/piece_table.h"

using namespace iosig;

namespace {

PieceTable table_of(const std::vector<Extent>& extents) {
  PieceTableBuilder builder;
  for (const Extent& extent : extents) builder.add(extent);
  return builder.finish();
}

/// The piece that a linear search finds.
Piece searched(const std::vector<Extent>& extents, std::int64_t offset) {
  std::int64_t next = INT64_MAX;
  for (const Extent& each : extents) {
    if (each.logical > offset) next = std::min(next, each.logical);
    if (each.logical <= offset && offset - each.logical < each.length)
      return {offset, each.length - (offset - each.logical), each.id, each.physical + (offset - each.logical), false};
  }
  return {offset, next - offset, 0, 0, true};
}

/// Compares the table at all interesting offsets. A hole may end early, at the beginning of the next part, only.
void compare(const std::vector<Extent>& extents) {
  const PieceTable made = table_of(extents);
  const auto read = PieceTable::read(made.bytes(), "test");
  REQUIRE(read);
  CHECK(*read == made);
  std::vector<std::int64_t> offsets = {0, 1, INT64_MAX - 1};
  const std::size_t step = std::max<std::size_t>(1, extents.size() / 300);
  for (std::size_t n = 0; n < extents.size(); n += step)
    for (const std::int64_t at :
         {extents[n].logical - 1, extents[n].logical, extents[n].logical + extents[n].length / 2,
          extents[n].logical + extents[n].length - 1, extents[n].logical + extents[n].length})
      if (at >= 0 && at < INT64_MAX) offsets.push_back(at);
  for (const std::int64_t offset : offsets) REQUIRE(read->piece_at(offset) == searched(extents, offset));
}

}  // namespace

TEST_CASE("an empty table is a hole") {
  compare({});
  CHECK(table_of({}).bytes().size() < 32);
}

TEST_CASE("pieces of all kinds are found") {
  compare({{0, 1, 0, 0}});
  compare({{5, 3, 2, 100}, {8, 4, 1, 0}});
  compare({{0, INT64_MAX, 7, 0}});
  compare({{INT64_MAX - 1, 1, INT64_MAX, 0}});
  compare({{0, 1, 0, 0}, {INT64_MAX - 2, 2, INT64_MAX, 1}});  // the widest fields
  compare({{0, 1, 0, INT64_MAX - 2}, {std::int64_t{1} << 40, std::int64_t{1} << 50, 3, 0}});
}

TEST_CASE("random tables: dense, sparse, skewed, of many parts") {
  std::mt19937_64 random(15);
  const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 60; ++round) {
    const std::int64_t count = round % 10 == 0 ? 20'000 : below(3000) + 1, gap = std::int64_t{1} << below(30),
                       most = std::int64_t{1} << below(20), unit = std::int64_t{1} << below(12);
    std::vector<Extent> extents;
    std::int64_t at = below(1000) * unit;
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t length = (below(static_cast<std::uint64_t>(most)) + 1) * unit;
      extents.push_back({at, length, below(5), below(1u << 30) * unit});
      at += length;
      if (below(3) == 0) at += below(static_cast<std::uint64_t>(gap)) * unit;
      if (below(100) == 0) at += std::int64_t{1} << below(45);
    }
    compare(extents);
  }
}

TEST_CASE("a permutation of a million writes takes less than 4 bytes each") {
  std::vector<Extent> extents;
  std::vector<std::int64_t> places(1'000'000);
  for (std::size_t n = 0; n < places.size(); ++n) places[n] = static_cast<std::int64_t>(n) / 4;
  std::shuffle(places.begin(), places.end(), std::mt19937_64(1));
  for (std::size_t n = 0; n < places.size(); ++n)
    extents.push_back({static_cast<std::int64_t>(n) * 64, 64, static_cast<std::int64_t>(n) % 4, places[n] * 64});
  const PieceTable table = table_of(extents);
  CHECK(table.memory_bytes() < 4'000'000);
  for (std::size_t n = 0; n < extents.size(); n += 997)
    REQUIRE(table.piece_at(extents[n].logical + 5) == searched({extents[n]}, extents[n].logical + 5));
}

TEST_CASE("of changed bytes nothing but wrong pieces comes") {
  std::vector<Extent> extents;
  std::mt19937_64 random(3);
  for (std::int64_t n = 0; n < 9000; ++n)
    extents.push_back({n * 1000, 1 + static_cast<std::int64_t>(random() % 1000),
                       static_cast<std::int64_t>(random() % 9), static_cast<std::int64_t>(random() % 1'000'000)});
  const std::vector<std::uint8_t> sound = table_of(extents).bytes();
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::uint8_t> bytes = sound;
    // Mostly in the heads of the parts.
    const std::size_t place = random() % (round % 4 == 0 ? bytes.size() : 8 + 3 * 64);
    bytes[place] = static_cast<std::uint8_t>(random());
    if (round % 50 == 0) bytes.resize(random() % bytes.size());
    const auto table = PieceTable::read(bytes, "test");
    if (!table) continue;
    ++accepted;
    for (int n = 0; n < 20; ++n) {
      const auto offset = static_cast<std::int64_t>(random() % (n % 2 == 0 ? 10'000'000 : INT64_MAX));
      REQUIRE(table->piece_at(offset).length > 0);
    }
  }
  CHECK(accepted > 1000);
}
