// The short way for many regular writers finds what the general way does, or leaves the container to it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <random>

#include "iosig/base/crc32c.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/container/read/regular_writers.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

constexpr std::int64_t enough = 130;  ///< writers

/// Write n of writer w has `length` bytes at offset + w step + n stride.
struct Arrangement {
  std::int64_t writers = enough, writes = 16, length = 8, offset = 0, step = 8, stride = 8 * enough;
  bool at_once = false;  ///< all writers are open at the same time, and take turns
};

std::shared_ptr<const ContainerDirectory> made(const std::string& path) {
  auto container = create_container(path);
  REQUIRE(container);
  return *container;
}

void write(ContainerWriter& writer, std::int64_t offset, std::int64_t length, std::int64_t w, std::int64_t n) {
  std::string text(static_cast<std::size_t>(length), static_cast<char>('a' + (7 * w + 3 * n) % 26));
  REQUIRE(writer.write(offset, std::as_bytes(std::span(text))));
}

void fill(const std::shared_ptr<const ContainerDirectory>& container, const Arrangement& it) {
  const auto put = [&](ContainerWriter& writer, std::int64_t w, std::int64_t n) {
    write(writer, it.offset + w * it.step + n * it.stride, it.length, w, n);
  };
  std::vector<std::unique_ptr<ContainerWriter>> writers;
  for (std::int64_t w = 0; w < it.writers; ++w) {
    auto opened = ContainerWriter::open(container);
    REQUIRE(opened);
    if (it.at_once) {
      writers.push_back(*std::move(opened));
      continue;
    }
    for (std::int64_t n = 0; n < it.writes; ++n) put(**opened, w, n);
    REQUIRE((*opened)->close());
  }
  for (std::int64_t n = 0; n < it.writes; ++n)
    for (std::size_t w = 0; w < writers.size(); ++w) put(*writers[w], static_cast<std::int64_t>(w), n);
  for (const auto& writer : writers) REQUIRE(writer->close());
}

std::optional<IndexSnapshot> short_way(const ContainerDirectory& container) {
  return merge_regular_writers(container, container.list());
}

/// Compares with the map of pieces of all droppings, byte by byte, and with what a view reads.
void check_same(const std::shared_ptr<const ContainerDirectory>& container, const IndexSnapshot& merged) {
  const auto content = read_content(*container);
  REQUIRE(content);
  CHECK(content->problems.empty());
  CHECK(merged.status.size == content->size());
  ContainerStatus status = merged.status;
  status.size = 0;
  CHECK(status == content->status);
  CHECK(checked(merged.pattern));
  const auto map = piece_map_of(*content);
  const auto lookup = PatternLookup::of(merged.pattern);
  REQUIRE(map);
  REQUIRE(lookup);
  for (std::int64_t at = 0; at < merged.status.size + 10; ++at) {
    const Piece expected = map->piece_at(at), found = lookup->piece_at(at);
    REQUIRE(found.is_hole == expected.is_hole);
    if (found.is_hole) continue;
    REQUIRE(found.id == expected.id);
    REQUIRE(found.physical - found.logical == expected.physical - expected.logical);
  }
  const auto contents = [&](ContainerView::Source source) {
    const auto view = ContainerView::open(container, source);
    REQUIRE(view);
    std::string bytes(static_cast<std::size_t>((*view)->size()), '?');
    REQUIRE((*view)->read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  };
  (void)::unlink((container->path() + "/" + std::string(index_snapshot_name)).c_str());
  CHECK(contents(ContainerView::Source::snapshot) == contents(ContainerView::Source::droppings));
}

}  // namespace

TEST_CASE("many writers with even strides become one nest") {
  for (const bool at_once : {false, true}) {
    CAPTURE(at_once);
    const std::vector<Arrangement> arrangements = {
        {.at_once = at_once},                                                                // interleaved
        {.step = 8 * 16, .stride = 8, .at_once = at_once},                                   // segments
        {.writes = 1, .step = 8, .stride = 0, .at_once = at_once},                           // one write each
        {.length = 3, .offset = 1000, .step = 4, .stride = 4 * enough, .at_once = at_once},  // with holes
        {.writers = 200, .length = 1, .step = 1, .stride = 200, .at_once = at_once},
    };
    for (const Arrangement& each : arrangements) {
      const Directory directory;
      const auto container = made(directory / "box");
      fill(container, each);
      const auto merged = short_way(*container);
      REQUIRE(merged);
      CHECK(merged->pattern.terms.size() == 1);
      check_same(container, *merged);
    }
  }
}

TEST_CASE("writers one after the other may write over each other; at the same time only in the order of their ids") {
  int refused = 0;
  const std::vector<Arrangement> arrangements = {
      {.step = 0},                                             // all in one place
      {.step = 3, .stride = 8},                                // partly over the one before
      {.offset = 8 * 16 * enough, .step = -8, .stride = 100},  // downwards
      {.offset = 4000, .step = 8, .stride = -24},              // each downwards
      {.length = 8, .step = 8, .stride = 8},
  };
  for (Arrangement each : arrangements) {
    const Directory directory;
    const auto one_by_one = made(directory / "one"), at_once = made(directory / "many");
    fill(one_by_one, each);
    const auto merged = short_way(*one_by_one);
    REQUIRE(merged);
    check_same(one_by_one, *merged);
    each.at_once = true;
    fill(at_once, each);
    // Their numbers may be in order nevertheless: for each byte, the order of the writes may be that of the ids.
    const auto ordered = short_way(*at_once);
    if (ordered) check_same(at_once, *ordered);
    refused += ordered ? 0 : 1;
  }
  CHECK(refused >= 2);
}

TEST_CASE("arrangements in turn become as many nests") {
  const Directory directory;
  const auto container = made(directory / "box");
  fill(container, {.writers = 60});
  fill(container, {.writers = 50, .writes = 5, .offset = 7, .step = 100, .stride = 9});
  fill(container, {.writers = 40, .writes = 1, .step = 11, .stride = 0});
  const auto merged = short_way(*container);
  REQUIRE(merged);
  CHECK(merged->pattern.terms.size() >= 3);
  CHECK(merged->pattern.terms.size() <= 6);
  check_same(container, *merged);
}

TEST_CASE("random arrangements are as the map of pieces") {
  std::mt19937_64 random(5);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  int taken = 0;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    const Directory directory;
    const auto container = made(directory / "box");
    for (std::int64_t left = enough + 30; left > 0;) {
      Arrangement it{.writers = std::min(left, 20 + below(60)),
                     .writes = 1 + below(6),
                     .length = 1 + below(9),
                     .offset = below(300),
                     .step = below(40),
                     .stride = below(50),
                     .at_once = below(4) == 0};
      left -= it.writers;
      fill(container, it);
    }
    const auto merged = short_way(*container);
    taken += merged ? 1 : 0;
    if (merged) check_same(container, *merged);
  }
  CHECK(taken > 2);
}

TEST_CASE("whatever is not regular is left to the general way") {
  using Container = std::shared_ptr<const ContainerDirectory>;
  const auto dropping = [](const Container& container, const char* kind, int id) {
    return fmt::format("{}/d{}/{}.{}", container->path(), id % 16, kind, id);
  };
  const auto one_more = [](const Container& container, const std::function<void(ContainerWriter&)>& work) {
    auto writer = ContainerWriter::open(container);
    REQUIRE(writer);
    work(**writer);
    REQUIRE((*writer)->close());
  };
  const auto record_name = [](const Container& container) {
    return container->path() + "/" + container->list().closed_writers.front();
  };
  const std::vector<std::pair<const char*, std::function<void(const Container&)>>> changes = {
      {"a truncation", [&](const auto& c) { one_more(c, [](auto& w) { REQUIRE(w.truncate(500)); }); }},
      {"a hole", [&](const auto& c) { one_more(c, [](auto& w) { REQUIRE(w.punch(10, 20)); }); }},
      {"a writer without a write", [&](const auto& c) { one_more(c, [](auto&) {}); }},
      {"lengths that differ",
       [&](const auto& c) {
         one_more(c, [](auto& w) {
           write(w, 0, 3, 1, 1);
           write(w, 10, 4, 1, 1);
         });
       }},
      {"data that are missing", [&](const auto& c) { std::filesystem::remove(dropping(c, "data", 5)); }},
      {"data that were cut", [&](const auto& c) { std::filesystem::resize_file(dropping(c, "data", 5), 3); }},
      {"data that have grown", [&](const auto& c) { std::filesystem::resize_file(dropping(c, "data", 5), 999); }},
      {"an index that is missing", [&](const auto& c) { std::filesystem::remove(dropping(c, "index", 5)); }},
      {"a foreign name", [&](const auto& c) { test::write(c->path() + "/d3/notes", "mine"); }},
      {"a tail", [&](const auto& c) { test::write(dropping(c, "tail", 5), ""); }},
      {"a record that is missing", [&](const auto& c) { std::filesystem::remove(record_name(c)); }},
      {"a record that was cut",
       [&](const auto& c) {
         std::filesystem::resize_file(record_name(c), std::filesystem::file_size(record_name(c)) - 1);
       }},
      {"a record behind which there is more",
       [&](const auto& c) { std::ofstream(record_name(c), std::ios::app) << "IOX"; }},
      {"a writer that repair gave up", [&](const auto& c) { record_given_up_writer(*c, 7, 0, nullptr); }},
      {"a writer that had synced and is gone",
       [&](const auto& c) { SyncRecord().append(*c, SyncRecord::open_file(*c), {.id = 1000, .data_bytes = 5}); }},
  };
  for (const auto& [name, change] : changes) {
    const std::string what = name;  // clang 14 captures no binding
    CAPTURE(what);
    const Directory directory;
    const auto container = made(directory / "box");
    fill(container, {});
    CHECK(short_way(*container));
    change(container);
    CHECK_FALSE(short_way(*container));
  }
}

TEST_CASE("a few writers are left to the general way") {
  const Directory directory;
  const auto container = made(directory / "box");
  fill(container, {.writers = 127});
  CHECK_FALSE(short_way(*container));
}

TEST_CASE("of several records of a writer the last one counts") {
  const Directory directory;
  const auto container = made(directory / "box");
  fill(container, {});
  const auto records = ClosedWriters::read(*container, container->list().closed_writers);
  REQUIRE(records);
  ClosedWriter again = *records->find(9);
  record_closed_writer(*container, again, records->find(9));
  const auto merged = short_way(*container);
  REQUIRE(merged);
  check_same(container, *merged);
  again.data_bytes += 1;  // does not fit its index
  record_closed_writer(*container, again, records->find(9));
  CHECK_FALSE(short_way(*container));
}
