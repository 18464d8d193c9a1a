// An overview of traces for pictures, of a size that does not depend on the number of calls: sums by layer, call and
// file, which processes were busy when, where bytes moved when, and the accesses of the greatest files over time.
//
// Four passes over the calls: three queries (query.h), then the grids, whose range of time is known by then. Memory: as
// for a query by file, and about 3 MB for each plotted file.
//
// Source: docs/references.md#pattern Figs. 16 and 20 (offsets over time), docs/references.md#doe sections 1 and 2
// (latency by layer). The grids are ours.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/observe/grid.h"
#include "iosig/observe/query.h"
#include "iosig/observe/size_counts.h"
#include "iosig/trace/trace.h"

namespace iosig::observe {

struct OverviewLimits {
  std::size_t files = 12;              ///< plotted ones
  std::size_t lines = 64;              ///< of processes
  std::uint32_t columns = 360;         ///< of time
  std::size_t accesses = 1000;         ///< of a file that are kept one by one
  std::size_t raster_bytes = 100'000;  ///< of the encoded rasters of a file; at least 1000
};

/// Processes whose figures are added up: one, or several neighbours if there are more than OverviewLimits::lines.
struct ProcessLine {
  const trace::Process* first = nullptr;  ///< in the order of rank (those without one last), host and pid
  const trace::Process* last = nullptr;
  std::uint64_t processes = 0;
  std::uint64_t calls = 0;  ///< at least 1
  std::uint64_t read_bytes = 0, written_bytes = 0;
  std::array<std::int64_t, std::size(trace::layer_names)> busy_ns{};  ///< the sum over the processes
};

/// Bytes moved by column of time and by row; a transfer is divided evenly over its duration.
struct Heat {
  Grid read, written;
};

/// The calls on one file.
struct FileSummary {
  std::string_view path;
  /// The lowest layer that moved bytes of it, or else that has calls on it. The fields below are of this layer.
  trace::Layer layer{};
  std::uint64_t calls = 0, failed = 0, read_bytes = 0, written_bytes = 0;
  std::int64_t time_ns = 0;
  std::int64_t first_ns = 0, last_ns = 0;  ///< the first start and the last end
  Order order = {};
};

struct PlottedAccess {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t line = 0;  ///< of its process
  bool is_write = false;
};

/// The accesses to a file that moved bytes and have an offset, in the layer FileSummary::layer.
struct PlottedFile {
  std::uint64_t accesses = 0;
  std::uint64_t end_bytes = 0;  ///< where the furthest one ends
  /// All of them, in the order of their starts; empty if they are more than OverviewLimits::accesses: see the rasters.
  std::vector<PlottedAccess> list;
  /// Bytes moved by the time of the access's start, from FileSummary::first_ns to last_ns, and by offset; a row is
  /// `bytes_per_row`, from offset 0.
  Grid read, written;
  std::uint64_t bytes_per_row = 1;
};

struct Overview {
  std::int64_t started_ns = 0;  ///< since 1970; all times count from here
  std::int64_t span_ns = 1;     ///< to the last end of a call; at least 1
  std::vector<Row> layers;      ///< by layer, with own time
  std::vector<Row> calls;       ///< by layer and call, with own time; values are durations in ns
  std::vector<FileSummary>
      files;  ///< all: the system's (is_of_system()) last, else most bytes first, then most calls, then by path
  std::vector<ProcessLine> lines;
  std::uint64_t processes = 0;
  /// Busy nanoseconds by column of time; row: line * layers + layer. Threads of a process are busy once.
  Grid busy;
  Heat by_line, by_file;             ///< rows: lines; the plotted files
  std::vector<PlottedFile> plotted;  ///< of the first `files`
  /// Transfers in the files' layers, by the binary logarithm of their bytes, rounded down.
  std::array<std::uint64_t, 64> read_sizes{}, written_sizes{};
  SizeCounts read_counts, written_counts;
  std::uint64_t without_offset = 0;  ///< transfers that cannot be plotted
  std::uint64_t unfinished = 0;      ///< calls without an end: they are in no figure of time
  std::uint64_t impossible_calls = 0;
  bool compares_clocks = false;  ///< of several nodes, which could not be aligned
  std::vector<Error> faults;     ///< blocks that could not be read
};

/// Selects the calls on files that match the glob `files` (trace::matches_file()); empty: all. Refers to `traces`.
/// Fails as answer() does.
[[nodiscard]] Result<Overview> overview_of(std::span<const trace::Trace> traces, const std::string& files,
                                           const OverviewLimits& limits = {});

}  // namespace iosig::observe
