#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "iosig/observe/overview.h"
#include "trace/part_maker.h"
#include "trace/place.h"

using namespace iosig;
using namespace iosig::observe;
using namespace iosig::trace::test;
using trace::Call;
using trace::Layer;
using trace::PartHeader;
using trace::Slot;

namespace {

/// A call on file 1; times are nanoseconds after tick 1000, which is the trace's start.
Slot transfer(std::uint32_t id, Call what, std::uint64_t start, std::uint64_t end, std::int64_t offset,
              std::int64_t bytes, std::uint32_t parent = 0) {
  Slot slot = call(id, what);
  slot.start = 1000 + start;
  slot.end = 1000 + end;
  slot.offset = offset;
  slot.length = slot.result = bytes;
  slot.parent = parent;
  slot.path = 1;
  return slot;
}

Bytes part_with(const PartHeader& header, const std::vector<Slot>& calls) {
  return part(header, {}, {name_chunk(1, "/data"), block_chunk(calls)});
}

struct Opened {
  std::vector<trace::Trace> traces;
  Overview overview;
};

Opened overview_in(const Place& place, const OverviewLimits& limits = {}) {
  Opened opened;
  auto trace = trace::Trace::open(place.path);
  REQUIRE(trace);
  opened.traces.push_back(std::move(*trace));
  auto overview = overview_of(opened.traces, "", limits);
  REQUIRE(overview);
  opened.overview = std::move(*overview);
  return opened;
}

std::uint64_t sum_of_row(const Grid& grid, std::uint32_t row) {
  std::uint64_t sum = 0;
  for (std::uint32_t column = 0; column < grid.columns(); ++column) sum += grid.at(column, row);
  return sum;
}

}  // namespace

TEST_CASE("grid: halves add neighbours, and the code has the gap before each amount") {
  Grid grid(4, 2);
  grid.add(0, 0, 1);
  grid.add(3, 0, 200);
  grid.add(3, 1, 5);
  CHECK(grid.encoded() == std::string("\0\1\2\xc8\1\3\5", 7));  // 200 = 0x48 + 1 * 128
  grid.halve_columns();
  CHECK(grid.at(0, 0) == 1);
  CHECK(grid.at(1, 0) == 200);
  grid.squeeze_rows();
  CHECK(grid.at(1, 0) == 205);
  CHECK(grid.at(1, 1) == 0);
  CHECK(grid.rows() == 2);
  grid.halve_rows();
  CHECK(grid.rows() == 1);
  CHECK(grid.at(1, 0) == 205);
}

TEST_CASE("grid: rows that are kept move up, in groups") {
  Grid grid(1, 6);
  for (std::uint32_t row = 0; row < 6; ++row) grid.add(0, row, 10 + row);
  grid.keep_rows({0, 2}, 2);
  REQUIRE(grid.rows() == 4);
  CHECK(grid.at(0, 1) == 11);
  CHECK(grid.at(0, 2) == 14);
  CHECK(grid.at(0, 3) == 15);
  grid.keep_rows({3});
  CHECK(grid.at(0, 0) == 15);
}

TEST_CASE("overview: bytes are those of the lowest layer, and spread evenly over the time that they took") {
  const Place place;
  place.put("a.part", part_with(header_of(9, 42), {transfer(1, Call::fwrite, 0, 100, 0, 400),
                                                   transfer(2, Call::pwrite, 20, 60, 0, 400, 1),
                                                   transfer(3, Call::pread, 90, 100, 100, 30)}));
  const auto [traces, found] = overview_in(place, {.columns = 10});
  CHECK(found.span_ns == 100);
  REQUIRE(found.files.size() == 1);
  CHECK(found.files[0].layer == Layer::posix);
  CHECK(found.files[0].written_bytes == 400);
  CHECK(found.lines.at(0).written_bytes == 400);  // as pwrite, not again as fwrite
  for (std::uint32_t column = 0; column < 10; ++column) {
    CAPTURE(column);
    CHECK(found.by_line.written.at(column, 0) == (column >= 2 && column < 6 ? 100 : 0));
    CHECK(found.by_line.read.at(column, 0) == (column == 9 ? 30 : 0));
    CHECK(found.by_file.written.at(column, 0) == found.by_line.written.at(column, 0));
    CHECK(found.busy.at(column, 1) == 10);  // stdio, all the time
  }
  CHECK(found.lines[0].busy_ns == std::array<std::int64_t, 3>{0, 100, 50});
  CHECK(found.written_sizes[8] == 1);  // 256 to below 512
  CHECK(found.read_sizes[4] == 1);
}

TEST_CASE("overview: the threads of a process are busy once, processes that share a line are added") {
  const Place place;
  const auto writes = [](std::uint64_t start) {
    return std::vector{transfer(1, Call::pwrite, start, start + 60, 0, 8)};
  };
  place.put("a.part", part_with(header_of(9, 42), writes(0)));
  place.put("b.part", part_with(header_of(9, 42), writes(40)));
  place.put("c.part", part_with(header_of(10, 43), writes(0)));
  const auto [traces, apart] = overview_in(place);
  REQUIRE(apart.lines.size() == 2);
  CHECK(apart.lines[0].busy_ns[2] == 100);
  CHECK(sum_of_row(apart.busy, 2) == 100);
  CHECK(sum_of_row(apart.busy, 5) == 60);
  const auto [again, together] = overview_in(place, {.lines = 1});
  REQUIRE(together.lines.size() == 1);
  CHECK(together.lines[0].processes == 2);
  CHECK(sum_of_row(together.busy, 2) == 160);
}

TEST_CASE("overview: few accesses are kept one by one, many become a raster with every byte") {
  const Place place;
  std::vector<Slot> slots;
  for (std::uint32_t n = 0; n < 300; ++n)
    slots.push_back(transfer(n + 1, n % 3 == 0 ? Call::pread : Call::pwrite, 10 * n, 10 * n + 5, 1000 * n, 700));
  place.put("a.part", part_with(header_of(9, 42), slots));
  const auto [traces, few] = overview_in(place, {.accesses = 300});
  REQUIRE(few.plotted.size() == 1);
  REQUIRE(few.plotted[0].list.size() == 300);
  CHECK(few.plotted[0].list[7].offset == 7000);
  CHECK(few.plotted[0].list[7].start_ns == 70);
  CHECK(few.plotted[0].list[7].is_write);
  const auto [again, many] = overview_in(place, {.accesses = 299});
  const PlottedFile& file = many.plotted.at(0);
  CHECK(file.list.empty());
  CHECK(file.accesses == 300);
  CHECK(file.end_bytes == 299'700);
  CHECK(file.bytes_per_row == 2048);  // 256 rows of 1024 are 262144, too few
  std::uint64_t read = 0, written = 0;
  for (std::uint32_t row = 0; row < file.read.rows(); ++row) {
    read += sum_of_row(file.read, row);
    written += sum_of_row(file.written, row);
  }
  CHECK(read == 100 * 700);
  CHECK(written == 200 * 700);
  CHECK(file.written.at(static_cast<std::uint32_t>(512 * 10 / 2995), 0) == 700);  // access 1, at 10 of 2995 ns
}

TEST_CASE("overview: a raster gets coarser until it is small enough, and loses no byte") {
  const Place place;
  std::vector<Slot> slots;
  std::uint64_t random = 1;
  for (std::uint32_t n = 0; n < 500; ++n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    slots.push_back(transfer(n + 1, Call::pwrite, 10 * n, 10 * n + 5, static_cast<std::int64_t>(random >> 44), 100));
  }
  place.put("a.part", part_with(header_of(9, 42), slots));
  const auto [traces, found] = overview_in(place, {.accesses = 10, .raster_bytes = 1000});
  const PlottedFile& file = found.plotted.at(0);
  CHECK(file.written.encoded().size() <= 1000);
  CHECK(file.written.columns() < 512);
  CHECK(file.bytes_per_row * file.written.rows() >= file.end_bytes);
  std::uint64_t written = 0;
  for (std::uint32_t row = 0; row < file.written.rows(); ++row) written += sum_of_row(file.written, row);
  CHECK(written == 500 * 100);
}
