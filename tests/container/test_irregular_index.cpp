// The table of writes without a pattern is that of PLFS's map of pieces, and what programs read is what they wrote.
#include <doctest/doctest.h>

#include <random>

#include "iosig/container/read/irregular_index.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/container/read/narrow_writes.h"
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

struct Offsets {
  std::int64_t range = 1 << 20, unit = 1, longest = 10;  ///< offsets and lengths are multiples of the unit
};

/// Frames of 3 writers, 4 each, of random writes, some with equal sequence numbers.
ContainerContent random_writes(std::uint64_t seed, int writes, const Offsets& offsets) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  ContainerContent content;
  for (std::int64_t id : {2, 5, 11}) {
    WriterContent writer;
    writer.id = id;
    std::int64_t physical = below(1 << 20);
    for (int frame = 0; frame < 4; ++frame) {
      IndexedWrites indexed{.opened = 1'000'000, .closed = 1'000'000 + 2 * writes, .physical = physical};
      PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
      for (int n = 0; n < writes; ++n) {
        const std::int64_t logical = below(offsets.range) * offsets.unit,
                           length = (below(offsets.longest) + 1) * offsets.unit;
        builder.add_literal(std::array{logical, length, physical, indexed.opened + n + below(writes)}.data());
        physical += length;
        indexed.logical_end = std::max(indexed.logical_end, logical + length);
      }
      indexed.physical_end = physical;
      indexed.pattern = builder.finish();
      writer.writes.push_back(std::move(indexed));
    }
    content.writers.push_back(std::move(writer));
  }
  return content;
}

/// A write of 8 bytes, as the only one of a writer, that `change` has changed.
template <class Change>
bool is_narrow(Change change) {
  ContainerContent content;
  content.writers.emplace_back();
  IndexedWrites writes{.opened = 5, .closed = 6, .physical = 0, .physical_end = 16, .logical_end = 108};
  std::array<std::int64_t, 4> first{64, 8, 0, 5}, second{100, 8, 8, 6};
  change(writes, second, content.writers[0]);
  PatternBuilder builder(index_columns, {-1, -1, -1, -1, -1, -1, -1, -1});
  builder.add_literal(first.data());
  builder.add_literal(second.data());
  writes.pattern = builder.finish();
  content.writers[0].writes.push_back(std::move(writes));
  return table_of_narrow_writes(content).has_value();
}

void check_same_pieces(const PieceTable& table, const ContainerContent& content, std::int64_t end) {
  const auto map = piece_map_of(content);
  REQUIRE(map);
  for (std::int64_t at = 0; at < end;) {
    Piece expected = map->piece_at(at), found = table.piece_at(at);
    if (expected.id == hole_id) expected = {expected.logical, expected.length, 0, 0, true};
    REQUIRE(found.is_hole == expected.is_hole);
    REQUIRE(found.id == expected.id);
    if (!found.is_hole) REQUIRE(found.physical == expected.physical);
    at += std::min(found.length, std::max<std::int64_t>(1, expected.length));
  }
}

}  // namespace

TEST_CASE("a table has the pieces of the map in which each write was put over the earlier ones") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::int64_t range = seed % 3 == 0 ? 2000 : 1'000'000, longest = seed % 2 == 0 ? 10 : 400;
    const ContainerContent content = random_content(seed, 1 + static_cast<int>(seed % 5), 200, range, longest);
    const auto table = piece_table_of(content);
    REQUIRE(table);
    check_same_pieces(*table, content, range + longest);
  }
}

TEST_CASE("a table of narrow writes has these pieces, too") {
  constexpr std::int64_t terabyte = std::int64_t{1} << 40;
  for (const Offsets& offsets : {Offsets{}, Offsets{.range = 3000}, Offsets{.range = 1, .longest = 5000},
                                 Offsets{.range = 1 << 22, .longest = 200'000}, Offsets{.range = 1 << 16, .unit = 64},
                                 Offsets{.range = terabyte / 4096, .unit = 4096, .longest = 100}})
    for (const int writes : {1, 7, 600, 15'000}) {  // 180,000 in all are several groups for the threads
      const ContainerContent content = random_writes(static_cast<std::uint64_t>(writes), writes, offsets);
      const auto table = table_of_narrow_writes(content);
      REQUIRE(table);
      check_same_pieces(*table, content, (offsets.range + offsets.longest) * offsets.unit);
      // A snapshot has it.
      const auto read = PieceTable::read(table->bytes(), "snapshot");
      CHECK((read && *read == *table));
    }
}

TEST_CASE("writes that have wide fields, no bytes, or holes over them are not narrow") {
  using Write = std::array<std::int64_t, 4>;
  constexpr std::int64_t wide = std::int64_t{1} << 32;
  CHECK(is_narrow([](IndexedWrites&, Write&, WriterContent&) {}));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[write_length] = 0; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[write_length] = wide; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[physical_offset] = wide; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[physical_offset] = INT64_MAX; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[write_sequence] = 4; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[logical_offset] = -8; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write& write, WriterContent&) { write[logical_offset] = 108; }));
  CHECK_FALSE(is_narrow([](IndexedWrites& writes, Write&, WriterContent&) { writes.closed = 5 + wide; }));
  CHECK_FALSE(is_narrow([](IndexedWrites&, Write&, WriterContent& writer) {
    writer.marks.push_back({IndexMark::Kind::punch, 0, 10, 7});
  }));
  // Beyond 4 GiB, offsets must be multiples of what the file's size is divided by.
  const auto far = [](std::int64_t offset) {
    return is_narrow([=](IndexedWrites& writes, Write& write, WriterContent&) {
      write[logical_offset] = offset;
      writes.logical_end = offset + 8;
    });
  };
  CHECK(far(wide - 64));
  CHECK(far(32 * wide));
  CHECK(far(32 * wide + 64));
  CHECK_FALSE(far(32 * wide + 8));
  CHECK_FALSE(far(INT64_MAX - 8));
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
