#include "iosig/trace/import/darshan_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace iosig::trace {
namespace {

constexpr std::size_t frequent_sizes = 4;
/// Sums of so many do not overflow.
constexpr std::int64_t max_count = INT64_MAX / 64, max_bytes = INT64_MAX / 2;

/// Counters of POSIX, from the highest byte that was read on. They are alike in all versions.
enum PosixCounter : std::size_t {
  max_byte_read = 0,
  max_byte_written = 1,
  consecutive_reads = 2,
  consecutive_writes = 3,
  sequential_reads = 4,  ///< consecutive ones, and those further behind
  sequential_writes = 5,
  file_not_aligned = 9,
  file_alignment = 10,
  read_ranges = 13,
  write_ranges = 23,
  posix_sizes = 41,
  posix_size_counts = 45
};
/// Of MPI-IO, from the ranges on.
enum MpiCounter : std::size_t { mpi_read_ranges = 0, mpi_write_ranges = 10, mpi_sizes = 20, mpi_size_counts = 24 };

constexpr CounterLayout layouts[] = {{.module = DarshanModule::posix,
                                      .version = 1,
                                      .bytes = 680,
                                      .first_access = 1,
                                      .syncs = 10,
                                      .bytes_moved = 13,
                                      .rest = 15,
                                      .first_fopen = 6},
                                     {.module = DarshanModule::posix,
                                      .version = 2,
                                      .bytes = 648,
                                      .first_access = 1,
                                      .syncs = 6,
                                      .bytes_moved = 9,
                                      .rest = 11},
                                     {.module = DarshanModule::posix,
                                      .version = 3,
                                      .bytes = 664,
                                      .first_access = 1,
                                      .syncs = 6,
                                      .bytes_moved = 9,
                                      .rest = 11},
                                     {.module = DarshanModule::posix,
                                      .version = 4,
                                      .bytes = 704,
                                      .first_access = 3,
                                      .syncs = 8,
                                      .bytes_moved = 14,
                                      .rest = 16},
                                     {.module = DarshanModule::mpi_io,
                                      .version = 1,
                                      .bytes = 544,
                                      .first_access = 2,
                                      .syncs = 10,
                                      .bytes_moved = 14,
                                      .rest = 19},
                                     {.module = DarshanModule::mpi_io,
                                      .version = 2,
                                      .bytes = 544,
                                      .first_access = 2,
                                      .syncs = 10,
                                      .bytes_moved = 14,
                                      .rest = 19},
                                     {.module = DarshanModule::mpi_io,
                                      .version = 3,
                                      .bytes = 560,
                                      .first_access = 2,
                                      .syncs = 10,
                                      .bytes_moved = 14,
                                      .rest = 19},
                                     // stdio has the bytes written before the bytes read.
                                     {.module = DarshanModule::stdio,
                                      .version = 1,
                                      .bytes = 240,
                                      .first_access = 1,
                                      .syncs = 0,
                                      .bytes_moved = 5,
                                      .rest = 7},
                                     {.module = DarshanModule::stdio,
                                      .version = 2,
                                      .bytes = 248,
                                      .first_access = 2,
                                      .syncs = 0,
                                      .bytes_moved = 6,
                                      .rest = 8}};

/// Reads the counters of a record; the first one that cannot be is a fault.
class Record {
 public:
  Record(DarshanNumbers number, const char* record) : number_(number), record_(record) {}

  [[nodiscard]] std::int64_t raw(std::size_t index) const { return number_.at<std::int64_t>(record_ + 16 + 8 * index); }
  /// A counter that was not kept is -1, and counts nothing.
  std::uint64_t at(std::size_t index, std::int64_t limit = max_count) {
    const std::int64_t count = raw(index);
    if ((count < -1 || count > limit) && !fault_) fault_ = count;
    return count < 0 || count > limit ? 0 : static_cast<std::uint64_t>(count);
  }
  [[nodiscard]] const std::optional<std::int64_t>& fault() const { return fault_; }

 private:
  DarshanNumbers number_;
  const char* record_;
  std::optional<std::int64_t> fault_;
};

void read_ranges_of(Record& record, std::size_t at, WayCounters& way) {
  for (std::size_t range = 0; range < way.ranges.size(); ++range) way.ranges[range] = record.at(at + range);
}

void read_sizes(Record& record, std::size_t sizes, std::size_t counts, FileCounters& file) {
  for (std::size_t which = 0; which < frequent_sizes; ++which) {
    const std::uint64_t size = record.at(sizes + which, max_bytes), count = record.at(counts + which);
    if (size > 0 && count > 0) file.sizes.emplace_back(size, count);
  }
  std::ranges::sort(file.sizes);
  file.has_sizes = true;
}

/// Behind the highest byte that was read or written.
std::uint64_t end_of(Record& record, std::size_t highest, const FileCounters& file) {
  const std::uint64_t read = file.reads.bytes > 0 ? record.at(highest, max_bytes) + 1 : 0;
  return std::max(read, file.writes.bytes > 0 ? record.at(highest + 1, max_bytes) + 1 : 0);
}

void read_posix(const CounterLayout& layout, Record& record, FileCounters& file) {
  const std::size_t from = layout.rest;
  file.syncs = record.at(layout.syncs) + record.at(layout.syncs + 1);
  // The counter before those of syncs, or of stdio, is that of mmap(2).
  file.mapped = record.at(layout.first_fopen > 0 ? layout.first_fopen - 1 : layout.syncs - 1);
  file.end = end_of(record, from + max_byte_read, file);
  for (const bool is_write : {false, true}) {
    WayCounters& way = is_write ? file.writes : file.reads;
    const std::size_t of = from + (is_write ? 1 : 0);
    way.consecutive = std::min(record.at(of + consecutive_reads), way.calls);
    const std::uint64_t sequential = record.at(of + sequential_reads);
    way.forward = std::min(sequential - std::min(sequential, way.consecutive), way.calls - way.consecutive);
    read_ranges_of(record, from + (is_write ? write_ranges : read_ranges), way);
  }
  file.has_order = true;
  file.alignment = record.at(from + file_alignment, max_bytes);
  file.unaligned = std::min(record.at(from + file_not_aligned), file.calls());
  read_sizes(record, from + posix_sizes, from + posix_size_counts, file);
}

}  // namespace

Call mpi_call(MpiKind kind, bool is_write) {
  switch (kind) {
    case MpiKind::collective: return is_write ? Call::MPI_File_write_all : Call::MPI_File_read_all;
    case MpiKind::split: return is_write ? Call::MPI_File_write_all_begin : Call::MPI_File_read_all_begin;
    case MpiKind::nonblocking: return is_write ? Call::MPI_File_iwrite : Call::MPI_File_iread;
    case MpiKind::independent:
    case MpiKind::mixed: break;
  }
  return is_write ? Call::MPI_File_write : Call::MPI_File_read;
}

const CounterLayout* counter_layout(const DarshanRegion& region, DarshanModule module) {
  const auto* const layout = std::ranges::find_if(
      layouts, [&](const CounterLayout& each) { return each.module == module && each.version == region.version; });
  return layout == std::end(layouts) ? nullptr : layout;
}

DarshanCounters darshan_counters(const CounterLayout& layout, DarshanNumbers number, const char* bytes,
                                 std::int64_t processes) {
  DarshanCounters counters{
      .record = number.at<std::uint64_t>(bytes), .rank = number.at<std::int64_t>(bytes + 8), .file = {}, .fault = {}};
  FileCounters& file = counters.file;
  Record record(number, bytes);
  const bool is_mpi = layout.module == DarshanModule::mpi_io;
  for (const bool is_write : {false, true}) {
    MpiKind& kind = is_write ? counters.writes : counters.reads;
    WayCounters& way = is_write ? file.writes : file.reads;
    int kinds = 0;
    for (std::size_t pair = 0; pair < (is_mpi ? 4U : 1U); ++pair) {
      const std::uint64_t count = record.at(layout.first_access + 2 * pair + (is_write ? 1 : 0));
      way.calls += count;
      if (count > 0) kind = static_cast<MpiKind>(pair), ++kinds;
    }
    if (kinds > 1) kind = MpiKind::mixed;
  }
  const bool is_stdio = layout.module == DarshanModule::stdio;
  file.reads.bytes = record.at(layout.bytes_moved + (is_stdio ? 1 : 0), max_bytes);
  file.writes.bytes = record.at(layout.bytes_moved + (is_stdio ? 0 : 1), max_bytes);
  if (is_mpi) {
    file.layer = Layer::mpi_io;
    file.read_call = mpi_call(counters.reads, false), file.write_call = mpi_call(counters.writes, true);
    file.syncs = record.at(layout.syncs);
    read_ranges_of(record, layout.rest + mpi_read_ranges, file.reads);
    read_ranges_of(record, layout.rest + mpi_write_ranges, file.writes);
    read_sizes(record, layout.rest + mpi_sizes, layout.rest + mpi_size_counts, file);
  } else if (is_stdio) {
    file.layer = Layer::stdio;
    file.read_call = Call::fread, file.write_call = Call::fwrite;
    file.end = end_of(record, layout.rest, file);
  } else {
    read_posix(layout, record, file);
    if (layout.first_fopen > 0 && record.raw(layout.first_fopen) > 0)
      counters.fault = "has accesses by stdio among those of POSIX, as logs of Darshan before 3.1 have";
  }
  if (counters.rank >= 0)
    file.rank = counters.rank;
  else
    file.processes = static_cast<std::uint64_t>(processes);
  if (counters.rank < -1 || counters.rank >= processes)
    counters.fault = fmt::format("is of rank {} in a job of {} processes", counters.rank, processes);
  if (record.fault()) counters.fault = fmt::format("has a counter of {}, which overflowed", *record.fault());
  return counters;
}

}  // namespace iosig::trace
