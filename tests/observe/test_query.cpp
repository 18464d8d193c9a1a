#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "iosig/base/crc32c.h"
#include "iosig/base/files.h"
#include "iosig/observe/query.h"
#include "trace/part_maker.h"
#include "trace/place.h"

using namespace iosig;
using namespace iosig::observe;
using namespace iosig::trace::test;
using trace::Call;
using trace::Layer;
using trace::Slot;

namespace {

std::vector<trace::Trace> opened(const Place& place) {
  std::vector<trace::Trace> traces;
  auto made = trace::Trace::open(place.path);
  REQUIRE(made);
  traces.push_back(std::move(*made));
  return traces;
}

/// A call on file 1 that moved as many bytes as it was asked for. Times are nanoseconds after tick 1000.
Slot timed(std::uint32_t id, Call what, std::uint64_t start, std::uint64_t end, std::int64_t bytes = 64,
           std::uint32_t parent = 0) {
  Slot slot = call(id, what);
  slot.start = 1000 + start;
  slot.end = 1000 + end;
  slot.length = slot.result = bytes;
  slot.parent = parent;
  return slot;
}

Row only_row(const Place& place, const Query& query) {
  const auto traces = opened(place);
  auto found = answer(traces, query);
  REQUIRE(found);
  REQUIRE(found->rows.size() == 1);
  return std::move(found->rows.front());
}

Query of_layer(Layer layer, std::vector<Key> by = {}) { return {.filter = {.layer = layer}, .by = std::move(by)}; }

/// fwrite [0, 100) has write [10, 30) and write [40, 90), and fsync [50, 60) below the second.
void put_nested(const Place& place) {
  place.put("a.part", part(header_of(9, 42),
                           {timed(1, Call::fwrite, 0, 100, 200), timed(2, Call::write, 10, 30, 100, 1),
                            timed(3, Call::write, 40, 90, 100, 1), timed(4, Call::fsync, 50, 60, 0, 3)},
                           {}));
}

}  // namespace

TEST_CASE("query: own time is without the calls below, which are subtracted once") {
  const Place place;
  put_nested(place);
  const auto traces = opened(place);
  const auto found = answer(traces, {.by = {Key::call}, .value = Value::own_time, .has_own_time = true});
  REQUIRE(found);
  REQUIRE(found->rows.size() == 3);
  const Row &fwrite = found->rows[0], &fsync = found->rows[1], &write = found->rows[2];  // stdio first, then by name
  CHECK(fwrite.call == Call::fwrite);
  CHECK(fwrite.own_ns == 100 - 20 - 50);
  CHECK(write.own_ns == 20 + 40);
  CHECK(fsync.own_ns == 10);
  CHECK(write.values.least() == 20);
  CHECK(write.values.greatest() == 40);
  CHECK(fwrite.own_ns + write.own_ns + fsync.own_ns == 100);
}

TEST_CASE("query: own time is the same when the calls below are of another layer, or begin after --to") {
  const Place place;
  put_nested(place);
  Query query = of_layer(Layer::stdio);
  query.has_own_time = true;
  CHECK(only_row(place, query).own_ns == 30);
  query.filter.to_ns = 5;
  CHECK(only_row(place, query).own_ns == 30);
}

TEST_CASE("query: a call below another one of its row adds no time, and is not in flight beside it") {
  const Place place;
  put_nested(place);
  const Row posix = only_row(place, of_layer(Layer::posix));
  CHECK(posix.calls == 3);
  CHECK(posix.time_ns == 20 + 50);
  CHECK(posix.in_flight.most() == 1);
  const Row all = only_row(place, {});
  CHECK(all.time_ns == 100);
  CHECK(all.written_bytes == 200);  // as fwrite, not again as write
  CHECK(all.in_flight.busy() == 100);
  CHECK(all.in_flight.most() == 1);
}

TEST_CASE("query: threads and processes that are in flight together are busy once") {
  const Place place;
  place.put("a.part", part(header_of(9, 42), {timed(1, Call::pwrite, 0, 100), timed(2, Call::pwrite, 200, 300)}, {}));
  place.put("b.part", part(header_of(10, 43), {timed(1, Call::pread, 50, 150)}, {}));
  const Row row = only_row(place, of_layer(Layer::posix));
  CHECK(row.in_flight.busy() == 250);
  CHECK(row.in_flight.total() == 300);
  CHECK(row.in_flight.most() == 2);
  CHECK(row.wall_ns() == 300);
  CHECK(row.written_bytes == 128);
  CHECK(row.read_bytes == 64);
}

TEST_CASE("query: a call in several windows gives each its share of time and bytes") {
  const Place place;
  // 10 bytes in [0, 25): windows of 10 get 4, 4 and 2.
  place.put("a.part",
            part(header_of(9, 42), {timed(1, Call::pwrite, 0, 25, 10), timed(2, Call::pwrite, 26, 28, 7)}, {}));
  Query query = of_layer(Layer::posix, {Key::window});
  query.window_ns = 10;
  query.divides_calls = true;
  const auto traces = opened(place);
  auto found = answer(traces, query);
  REQUIRE(found);
  REQUIRE(found->rows.size() == 3);
  const std::int64_t starts[] = {0, 10, 20}, busy[] = {10, 10, 5 + 2};
  const std::uint64_t bytes[] = {4, 4, 2 + 7}, calls[] = {1, 0, 1};
  for (std::size_t n = 0; n < 3; ++n) {
    const Row& row = found->rows[n];
    CHECK(row.window_ns == starts[n]);
    CHECK(row.in_flight.busy() == busy[n]);
    CHECK(row.written_bytes == bytes[n]);
    CHECK(row.calls == calls[n]);  // where it began
    CHECK(row.wall_ns() == 10);
  }
  query.divides_calls = false;
  found = answer(traces, query);
  REQUIRE(found);
  REQUIRE(found->rows.size() == 2);
  CHECK(found->rows[0].time_ns == 25);
  CHECK(found->rows[0].written_bytes == 10);
}

TEST_CASE("query: a call without an end has no duration, and a failed one moves nothing") {
  const Place place;
  Slot in_flight = timed(1, Call::pwrite, 0, 0), left = timed(2, Call::pread, 5, 5),
       failed = timed(3, Call::pread, 10, 20);
  in_flight.end = 0;
  left.flags = trace::abandoned;
  failed.result = -5;
  place.put("a.part", part(header_of(9, 42), {in_flight, left, failed}, {}));
  Query query = of_layer(Layer::posix);
  query.value = Value::duration;
  const Row row = only_row(place, query);
  CHECK(row.calls == 3);
  CHECK(row.unfinished == 2);
  CHECK(row.failed == 1);
  CHECK(row.values.count() == 1);
  CHECK(row.time_ns == 10);
  CHECK(row.read_bytes + row.written_bytes == 0);
}

TEST_CASE("query: a call that ends before it begins is left out, and said") {
  const Place place;
  place.put("a.part", part(header_of(9, 42), {},
                           {block_chunk({timed(1, Call::pwrite, 0, 10), timed(2, Call::pwrite, 100, 50)})}));
  const auto traces = opened(place);
  const auto found = answer(traces, of_layer(Layer::posix));
  REQUIRE(found);
  CHECK(found->rows.at(0).calls == 1);
  CHECK(found->impossible_calls == 1);
  CHECK(found->first_impossible == "pwrite of process 42 on node1");
}

TEST_CASE("query: more rows than fit into memory are refused") {
  const Place place;
  place.put("a.part", part(header_of(9, 42), {timed(1, Call::pwrite, 0, max_rows + 1)}, {}));
  Query query = of_layer(Layer::posix, {Key::window});
  query.window_ns = 1;
  query.divides_calls = true;
  const auto traces = opened(place);
  const auto found = answer(traces, query);
  REQUIRE(!found);
  CHECK(found.error().kind == ErrorKind::usage);
}

TEST_CASE("query: filters hold together") {
  const Place place;
  auto slots = calls(1, 50);  // each 100 ns after the one before, 64 bytes
  slots[9].result = 10;
  place.put("a.part", part(header_of(9, 42), {},
                           {name_chunk(1, "/data/a"), block_chunk({slots.begin(), slots.begin() + 25}),
                            block_chunk({slots.begin() + 25, slots.end()}),
                            chunk(trace::ChunkKind::process, std::string_view("rank=3\0", 7))}));
  const auto calls_of = [&](const Filter& filter) {
    const auto traces = opened(place);
    const auto found = answer(traces, {.filter = filter});
    REQUIRE(found);
    return found->rows.empty() ? 0 : found->rows.front().calls;
  };
  CHECK(calls_of({}) == 50);
  CHECK(calls_of({.from_ns = 4000}) == 10);  // the first call begins at 0
  CHECK(calls_of({.from_ns = 3999, .to_ns = 4001}) == 1);
  CHECK(calls_of({.min_bytes = 11}) == 49);
  CHECK(calls_of({.calls = {Call::pread}}) == 0);
  CHECK(calls_of({.calls = {Call::pread, Call::pwrite}}) == 50);
  CHECK(calls_of({.ranks = {{0, 2}, {4, 9}}}) == 0);
  CHECK(calls_of({.ranks = {{3, 3}}}) == 50);
  CHECK(calls_of({.nodes = {"node2"}}) == 0);
  CHECK(calls_of({.nodes = {"node1"}, .pids = {42}}) == 50);
  CHECK(calls_of({.moves = trace::Moves::reads}) == 0);
}

TEST_CASE("query: blocks that are skipped take no name of a file with them") {
  const Place place;
  auto slots = calls(1, 60);
  slots[0].call = Call::open;
  slots[0].path = 1;
  slots[0].length = 0;
  place.put("a.part", part(header_of(9, 42), {},
                           {name_chunk(1, "/data/a"), block_chunk({slots.begin(), slots.begin() + 20}),
                            block_chunk({slots.begin() + 20, slots.begin() + 40}),
                            block_chunk({slots.begin() + 40, slots.end()})}));
  const auto traces = opened(place);
  const auto found = answer(traces, {.filter = {.files = "a", .from_ns = 5000}, .by = {Key::file}});
  REQUIRE(found);
  REQUIRE(found->rows.size() == 1);
  CHECK(found->rows[0].file == "/data/a");
  CHECK(found->rows[0].calls == 10);
}

TEST_CASE("query: traces are one, in the order of their starts; a process is in one of them") {
  const Place one, other;
  one.put("a.part", part(header_of(9, 42), {timed(1, Call::pwrite, 100, 150)}, {}));
  auto header = header_of(10, 43);
  other.put("a.part", part(header, {timed(1, Call::pwrite, 0, 120)}, {}));
  std::vector<trace::Trace> traces = opened(one);
  traces.push_back(std::move(opened(other).front()));
  auto found = answer(traces, of_layer(Layer::posix));
  REQUIRE(found);
  CHECK(found->started_ns == 1'700'000'000'000'001'000);
  CHECK(found->rows.at(0).in_flight.busy() == 150);
  CHECK(found->rows.at(0).in_flight.most() == 2);
  traces.push_back(std::move(opened(one).front()));
  found = answer(traces, {});
  REQUIRE(!found);
  CHECK(found.error().kind == ErrorKind::usage);
}

TEST_CASE("query: an answer says that it compares clocks of several nodes, unless these are apart") {
  const Place place;
  auto other = header_of(10, 43);
  std::memcpy(other.host, "node2", 5);
  other.boot = 2;
  other.checksum = crc32c({reinterpret_cast<const std::uint8_t*>(&other), offsetof(trace::PartHeader, checksum)});
  place.put("a.part", part(header_of(9, 42), {timed(1, Call::pwrite, 0, 10)}, {}));
  place.put("b.part", part(other, {timed(1, Call::pwrite, 5, 15)}, {}));
  const auto traces = opened(place);
  const auto together = answer(traces, of_layer(Layer::posix));
  REQUIRE(together);
  CHECK(together->compares_clocks);
  const auto apart = answer(traces, of_layer(Layer::posix, {Key::node}));
  REQUIRE(apart);
  CHECK(!apart->compares_clocks);
  CHECK(apart->rows.size() == 2);
}

TEST_CASE("query: the list has the greatest values, the earlier call first") {
  const Place place;
  place.put("a.part", part(header_of(9, 42),
                           {timed(1, Call::pwrite, 0, 30), timed(2, Call::pwrite, 100, 150),
                            timed(3, Call::pwrite, 200, 230), timed(4, Call::pwrite, 300, 310)},
                           {}));
  const auto traces = opened(place);
  const auto found = answer(traces, {.value = Value::duration, .has_own_time = true, .list = 2});
  REQUIRE(found);
  REQUIRE(found->list.size() == 2);
  CHECK(found->list[0].access.id == 2);
  CHECK(found->list[1].access.id == 1);
  CHECK(found->list[1].own_ns == 30);
}

TEST_CASE("query: accesses in order are told from others, for each process and direction") {
  const Place place;
  const auto at = [](std::uint32_t id, Call what, std::int64_t offset) {
    Slot slot = call(id, what);  // 64 bytes
    slot.offset = offset;
    return slot;
  };
  place.put("a.part",
            part(header_of(9, 42),
                 {at(1, Call::pwrite, 0), at(2, Call::pwrite, 64), at(3, Call::pread, 0), at(4, Call::pwrite, 128),
                  at(5, Call::pwrite, 500), at(6, Call::pwrite, 0), at(7, Call::pwrite, trace::no_offset)},
                 {}));
  Query query = of_layer(Layer::posix);
  query.has_order = true;
  const Order found = only_row(place, query).order;
  CHECK(found.first == 2);
  CHECK(found.consecutive == 2);
  CHECK(found.forward == 1);
  CHECK(found.backward == 1);
  CHECK(found.unknown == 1);
}

namespace {

/// 300 reads of file 1 and writes of file 2 by a thread, every seventh read fails, every fifth write goes back; blocks
/// of 100 calls, and some calls in slots. `has_sums`: the blocks have sums.
void put_many(const Place& place, bool has_sums) {
  std::vector<Bytes> chunks{name_chunk(1, "/in"), name_chunk(2, "/out")};
  std::vector<Slot> slots;
  const auto memory = std::make_unique<trace::PackMemory>();
  for (std::uint32_t id = 1; id <= 640; ++id) {
    Slot slot = timed(id, id % 2 == 0 ? Call::pwrite : Call::pread, 100 * id, 100 * id + 10 + id % 50);
    slot.file = 1 + (id % 2 == 0);
    slot.offset = id % 5 == 0 ? 0 : 64 * id;
    if (id % 7 == 0) slot.result = -5;
    if (id <= 2) {
      slot.call = Call::open;
      slot.file = slot.path = id;
    }
    slots.push_back(slot);
    if (slots.size() < 100 || id > 600) continue;
    Bytes packed(trace::max_packed_bytes);
    packed.resize(trace::pack(slots, 77, 0, {}, {.has_sums = has_sums}, *memory, packed));
    chunks.push_back(packed);
    slots.clear();
  }
  place.put("a.part", part(header_of(9, 42), slots, chunks));
}

/// The same question, answered by every call: a range of time has no sums.
Query by_calls(Query query) {
  query.filter.to_ns = INT64_MAX - 1;
  return query;
}

void check_equal(const Answer& one, const Answer& other) {
  REQUIRE(one.rows.size() == other.rows.size());
  for (std::size_t n = 0; n < one.rows.size(); ++n) {
    const Row &a = one.rows[n], &b = other.rows[n];
    CHECK(a.file == b.file);
    CHECK(a.calls == b.calls);
    CHECK(a.failed == b.failed);
    CHECK(a.unfinished == b.unfinished);
    CHECK(a.read_bytes == b.read_bytes);
    CHECK(a.written_bytes == b.written_bytes);
    CHECK(a.time_ns == b.time_ns);
    CHECK(a.values.count() == b.values.count());
    CHECK(a.values.least() == b.values.least());
    CHECK(a.values.greatest() == b.values.greatest());
    CHECK(a.values.mean() == doctest::Approx(b.values.mean()));
    CHECK(a.values.percentile(50) == doctest::Approx(b.values.percentile(50)).epsilon(0.125));
    CHECK(a.order.first == b.order.first);
    CHECK(a.order.consecutive == b.order.consecutive);
    CHECK(a.order.forward == b.order.forward);
    CHECK(a.order.backward == b.order.backward);
    CHECK(a.order.unknown == b.order.unknown);
  }
}

}  // namespace

TEST_CASE("query: sums of blocks and the calls themselves give the same answer") {
  for (const bool has_sums : {true, false}) {
    const Place place;
    put_many(place, has_sums);
    const auto traces = opened(place);
    for (const std::vector<Key>& by : {std::vector{Key::layer, Key::file}, {Key::layer}, {Key::process, Key::layer}})
      for (const std::string& files : {std::string(), std::string("out")}) {
        const Query query{.filter = {.files = files, .only_moving = true},
                          .by = by,
                          .value = Value::duration,
                          .has_own_time = true,
                          .has_order = true,
                          .has_intervals = false,
                          .coarse_from = 0};
        const auto sums = answer(traces, query), calls = answer(traces, by_calls(query));
        REQUIRE(sums);
        REQUIRE(calls);
        CHECK(sums->is_coarse);
        CHECK_FALSE(calls->is_coarse);
        check_equal(*sums, *calls);
      }
  }
}

TEST_CASE("query: where calls are nested, sums are not asked") {
  const Place place;
  put_nested(place);
  const auto found =
      answer(opened(place), {.by = {Key::call}, .value = Value::duration, .has_intervals = false, .coarse_from = 0});
  REQUIRE(found);
  CHECK_FALSE(found->is_coarse);
}
