#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <random>

#include "iosig/model/pattern_cursor.h"
#include "iosig/replay/replay_check.h"
#include "iosig/replay/worker_group.h"
#include "support/directories.h"

using namespace iosig;

namespace {

const ReplayWatch unwatched = [](std::uint64_t) { return true; };

struct Write {
  std::int64_t rank, offset, length;
};

WriteMap map_of(const std::vector<Write>& writes) {
  WriteMapBuilder builder;
  for (const Write& write : writes) REQUIRE(builder.add(write.rank, write.offset, write.length));
  return builder.finish();
}

/// Small writes anywhere in the first few hundred bytes, so that they overlap again and again.
std::vector<Write> tangled(unsigned seed, std::int64_t ranks, int count) {
  std::mt19937 random(seed);
  std::vector<Write> writes;
  for (int n = 0; n < count; ++n)
    writes.push_back({static_cast<std::int64_t>(random()) % ranks, static_cast<std::int64_t>(random() % 400),
                      static_cast<std::int64_t>(random() % 50)});
  return writes;
}

/// What the file holds when each write comes after the ones before it.
std::vector<std::byte> painted(const std::vector<Write>& writes) {
  std::vector<std::byte> file;
  std::map<std::int64_t, std::int64_t> physical;
  for (const auto& [rank, offset, length] : writes) {
    if (length == 0) continue;
    if (file.size() < static_cast<std::size_t>(offset + length)) file.resize(static_cast<std::size_t>(offset + length));
    fill(std::span(file).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length)),
         origin_of(rank, offset, physical[rank]), static_cast<std::uint64_t>(offset));
    physical[rank] += length;
  }
  return file;
}

constexpr ReplayForm forms[] = {ReplayForm::container, ReplayForm::traditional, ReplayForm::plain};

}  // namespace

TEST_CASE("replay: a map keeps each rank's writes in their order, and how many came before each") {
  const WriteMap map = map_of({{7, 0, 10}, {2, 10, 5}, {7, 100, 3}, {2, 0, 0}});
  REQUIRE(map.ranks.size() == 2);
  CHECK(map.ranks[0].rank == 2);
  CHECK(*expanded(map.ranks[0].writes) == std::vector<std::int64_t>{10, 5, 0, 1, 0, 0, 5, 3});
  CHECK(*expanded(map.ranks[1].writes) == std::vector<std::int64_t>{0, 10, 0, 0, 100, 3, 10, 2});
  CHECK(map.writes == 4);
  CHECK(map.bytes == 18);
  CHECK(map.size == 103);
  CHECK(map.longest == 10);
}

TEST_CASE("replay: a map refuses what no file can hold, one byte more than what it can") {
  WriteMapBuilder builder;
  CHECK(builder.add(0, INT64_MAX - 8, 8));
  CHECK(builder.add(0, INT64_MAX - 8, 9).error().kind == ErrorKind::bad_input);
  CHECK(builder.add(0, 0, max_write_bytes));
  CHECK(builder.add(0, 0, max_write_bytes + 1).error().kind == ErrorKind::bad_input);
  CHECK(builder.add(0, -1, 1).error().kind == ErrorKind::bad_input);
  CHECK(builder.add(-1, 0, 1));  // nobody's
  CHECK(builder.finish().left_out == 1);
}

TEST_CASE("replay: in turn, every byte is the last writer's, as painted by hand, in every form") {
  const test::Directory directory;
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const ReplayForm form : forms) {
      const std::vector<Write> writes = tangled(seed, 1 + seed, 60);
      const WriteMap map = map_of(writes);
      const ReplayTarget target{directory / fmt::format("{}-{}", name_of(form), seed), form, {}};
      REQUIRE(make_target(target));
      const auto done = replay_writes(
          map, target, {.processes = seed % 2 == 0 ? 0U : 2U, .in_turn = true, .is_marked = true}, unwatched);
      REQUIRE(done);
      const std::vector<std::byte> expected = painted(writes);
      auto source = ReplaySource::open(target);
      REQUIRE(source);
      std::vector<std::byte> found(expected.size() + 1);
      REQUIRE(source->read(0, found) == static_cast<std::int64_t>(expected.size()));
      found.pop_back();
      CHECK(found == expected);
      const auto check = check_replay(map, target, true, unwatched);
      REQUIRE(check);
      CHECK(check->wrong_bytes == 0);
    }
}

TEST_CASE("replay: at once, every byte is one rank's last, in every form") {
  const test::Directory directory;
  for (unsigned seed = 10; seed < 14; ++seed)
    for (const ReplayForm form : forms) {
      const WriteMap map = map_of(tangled(seed, 5, 200));
      const ReplayTarget target{directory / fmt::format("{}-{}", name_of(form), seed), form, {}};
      REQUIRE(make_target(target));
      REQUIRE(replay_writes(map, target, {.is_marked = true}, unwatched));
      const auto check = check_replay(map, target, false, unwatched);
      REQUIRE(check);
      CHECK(check->wrong_bytes == 0);
    }
}

TEST_CASE("replay: the check finds each byte that was changed, cut, added or put into a hole") {
  const test::Directory directory;
  const WriteMap map = map_of({{0, 0, 1000}, {1, 500, 1000}, {0, 3000, 100}});
  const ReplayTarget target{directory / "file", ReplayForm::plain, {}};
  REQUIRE(make_target(target));
  REQUIRE(replay_writes(map, target, {.in_turn = true, .is_marked = true}, unwatched));
  const auto wrong = [&](bool in_turn) { return check_replay(map, target, in_turn, unwatched)->wrong_bytes; };
  REQUIRE(wrong(true) == 0);
  const Fd file(::open(target.path.c_str(), O_RDWR));
  const auto at = [&](off_t offset) {
    char byte = 0;
    REQUIRE(::pread(file.get(), &byte, 1, offset) == 1);
    return byte;
  };
  const auto put = [&](off_t offset, char byte) { REQUIRE(::pwrite(file.get(), &byte, 1, offset) == 1); };
  for (const off_t offset : {0, 499, 500, 1499, 1500, 2999, 3000, 3099}) {
    const char before = at(offset);
    put(offset, static_cast<char>(before ^ 1));
    const auto check = check_replay(map, target, true, unwatched);
    CHECK(check->wrong_bytes == 1);
    CHECK(check->first_wrong == offset);
    CHECK(wrong(false) >= (offset < 500 || offset >= 1000 ? 1 : 0));
    put(offset, before);
  }
  REQUIRE(::ftruncate(file.get(), 3090) == 0);
  CHECK(wrong(true) == 10);
  REQUIRE(::ftruncate(file.get(), 3101) == 0);
  CHECK(wrong(true) >= 10);  // zeros may be right by chance
}

TEST_CASE("replay: what rank 0 wrote last is right only where the order does not say otherwise") {
  const test::Directory directory;
  const ReplayTarget target{directory / "file", ReplayForm::plain, {}};
  const WriteMap as_told = map_of({{0, 0, 100}, {1, 0, 100}}), other_way = map_of({{1, 0, 100}, {0, 0, 100}});
  REQUIRE(make_target(target));
  REQUIRE(replay_writes(other_way, target, {.in_turn = true, .is_marked = true}, unwatched));
  CHECK(check_replay(as_told, target, false, unwatched)->wrong_bytes == 0);
  CHECK(check_replay(as_told, target, true, unwatched)->wrong_bytes > 90);
  CHECK(check_replay(other_way, target, true, unwatched)->wrong_bytes == 0);
}

TEST_CASE("replay: a container's index is a map: replayed, it makes the same bytes") {
  const test::Directory directory;
  std::vector<Write> writes;
  for (std::int64_t n = 0; n < 50; ++n)
    for (std::int64_t rank = 0; rank < 3; ++rank) writes.push_back({rank, (3 * n + rank) * 64, 64});
  const WriteMap map = map_of(writes);
  for (const ReplayForm form : {ReplayForm::container, ReplayForm::traditional}) {
    const ReplayTarget target{directory / std::string(name_of(form)), form, {}};
    REQUIRE(make_target(target));
    REQUIRE(replay_writes(map, target, {}, unwatched));
    WriteMapBuilder builder;
    REQUIRE(add_container(builder, target.path));
    const WriteMap again = builder.finish();
    CHECK(again.writes == map.writes);
    CHECK(again.size == map.size);
    CHECK(again.ranks.size() == 3);
    REQUIRE(remove_target(target));
  }
}

TEST_CASE("replay: readers read every byte, and each rank what it wrote") {
  const test::Directory directory;
  const WriteMap map = map_of({{0, 0, 100}, {1, 100, 100}, {0, 200, 100}, {1, 300, 50}});
  for (const ReplayForm form : forms) {
    const ReplayTarget target{directory / std::string(name_of(form)), form, {}};
    REQUIRE(make_target(target));
    REQUIRE(replay_writes(map, target, {.syncs = true}, unwatched));
    const auto own = replay_reads(map, target, 0, unwatched);
    REQUIRE(own);
    CHECK(own->processes == 2);
    CHECK(own->reads == 4);
    CHECK(own->bytes == 350);
    const auto blocks = read_blocks(target, 3, 100, unwatched);
    REQUIRE(blocks);
    CHECK(blocks->reads == 4);
    CHECK(blocks->bytes == 350);
    CHECK((blocks->memory_bytes > 0) == (form != ReplayForm::plain));
  }
}

TEST_CASE("replay: nothing is replayed onto what is there, and what interrupts it is told") {
  const test::Directory directory;
  const WriteMap map = map_of({{0, 0, 100}, {1, 100, 100}});
  for (const ReplayForm form : forms) {
    const ReplayTarget target{directory / std::string(name_of(form)), form, {}};
    REQUIRE(make_target(target));
    CHECK(make_target(target).error().kind == ErrorKind::usage);
    const auto done = replay_writes(map, target, {}, [](std::uint64_t) { return false; });
    REQUIRE(!done);
    CHECK(done.error().message == "interrupted");
    CHECK(remove_target(target));
    CHECK(make_target(target));
  }
}
