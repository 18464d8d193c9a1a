// The table of writes without a pattern is that of PLFS's map of pieces, and what programs read is what they wrote.
#include <doctest/doctest.h>

#include <random>

#include "iosig/container/read/irregular_index.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/model/pattern_builder.h"

using namespace iosig;

namespace {

/// Frames of `writers` with random writes, truncations and punches over each other.
ContainerContent random_content(std::uint64_t seed, int writers, int writes, std::int64_t range, std::int64_t longest) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  ContainerContent content;
  std::int64_t sequence = 1;
  for (int id = 0; id < writers; ++id) {
    WriterContent writer;
    writer.id = id;
    content.writers.push_back(std::move(writer));
  }
  for (int frame = 0; frame < 3; ++frame)
    for (WriterContent& writer : content.writers) {
      IndexedWrites indexed;
      PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
      indexed.opened = sequence;
      for (int n = 0; n < writes; ++n) {
        const std::int64_t logical = below(range), length = below(longest) + 1;
        builder.add_literal(std::array{logical, length, below(1 << 20), sequence + below(writes)}.data());
      }
      sequence += frame == 1 ? 0 : writes;  // the second frames of all writers contend
      indexed.closed = sequence + writes;
      indexed.pattern = builder.finish();
      writer.writes.push_back(std::move(indexed));
      if (below(3) == 0) writer.marks.push_back({IndexMark::Kind::punch, below(range), below(longest), sequence});
      if (below(5) == 0) writer.marks.push_back({IndexMark::Kind::truncate, below(range), 0, sequence});
    }
  return content;
}

}  // namespace

TEST_CASE("a table has the pieces of the map in which each write was put over the earlier ones") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::int64_t range = seed % 3 == 0 ? 2000 : 1'000'000, longest = seed % 2 == 0 ? 10 : 400;
    const ContainerContent content = random_content(seed, 1 + static_cast<int>(seed % 5), 200, range, longest);
    const auto table = piece_table_of(content);
    const auto map = piece_map_of(content);
    REQUIRE(table);
    REQUIRE(map);
    for (std::int64_t at = 0; at < range + longest;) {
      Piece expected = map->piece_at(at), found = table->piece_at(at);
      if (expected.id == hole_id) expected = {expected.logical, expected.length, 0, 0, true};
      REQUIRE(found.is_hole == expected.is_hole);
      REQUIRE(found.id == expected.id);
      if (!found.is_hole) REQUIRE(found.physical == expected.physical);
      at += std::min(found.length, std::max<std::int64_t>(1, expected.length));
    }
  }
}

TEST_CASE("only indices of many writes without a pattern are tables") {
  CHECK_FALSE(is_irregular(ContainerContent{}));
  CHECK_FALSE(is_irregular(random_content(1, 2, 100, 1000, 10)));
  CHECK(is_irregular(random_content(1, 2, 1000, 1'000'000, 10)));
}

TEST_CASE("impossible writes have no table") {
  ContainerContent content = random_content(1, 1, 10, 1000, 10);
  PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
  builder.add_literal(std::array{std::int64_t{-1}, std::int64_t{5}, std::int64_t{0}, std::int64_t{1}}.data());
  content.writers[0].writes[0].pattern = builder.finish();
  CHECK_FALSE(piece_table_of(content));
}
