// Counters of files: sums over reads and writes of which a trace has no single calls (a Darshan log without DXT).
//
// A trace has them in its file `counters`, a line for each file, layer and process (docs/formats/trace.md). They tell
// how many bytes moved, in which sizes, and whether in order; neither when, nor at which offsets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/calls.h"

namespace iosig::trace {

inline constexpr std::string_view counters_name = "counters";  ///< the file in a trace
inline constexpr std::string_view counters_schema = "iosig.counters/1";

/// The greatest size of each range of WayCounters::ranges but the last; each begins behind the one before.
inline constexpr std::array<std::uint64_t, 9> size_range_ends{100,     1024,     10240,     102400,    1048576,
                                                              4194304, 10485760, 104857600, 1073741824};

/// The reads, or the writes.
struct WayCounters {
  std::uint64_t calls = 0, bytes = 0;
  std::uint64_t consecutive = 0;  ///< begin where the process's access before, of the same kind, ended
  std::uint64_t forward = 0;      ///< begin further behind
  std::array<std::uint64_t, size_range_ends.size() + 1> ranges{};  ///< how many calls have a size in each range
  bool operator==(const WayCounters&) const = default;
};

struct FileCounters {
  std::string path;
  Layer layer = Layer::posix;
  Call read_call = Call::read, write_call = Call::write;  ///< what the accesses were, as exactly as it is known
  std::optional<std::int64_t> rank;                       ///< nothing: the sum over all processes
  std::uint64_t processes = 1;                            ///< over how many it is summed: at most
  WayCounters reads, writes;
  std::uint64_t syncs = 0, mapped = 0;  ///< calls of fsync(2) and fdatasync(2), and of mmap(2)
  std::uint64_t end = 0;                ///< behind the last byte that was accessed; 0: not known
  bool has_order = false, has_sizes = false;
  std::uint64_t alignment = 0;                                 ///< in bytes; 0: not known
  std::uint64_t unaligned = 0;                                 ///< accesses whose offset is no multiple of it
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sizes;  ///< the most frequent ones, and how often they occur

  [[nodiscard]] std::uint64_t calls() const { return reads.calls + writes.calls; }
  bool operator==(const FileCounters&) const = default;
};

[[nodiscard]] std::string counters_text(const std::vector<FileCounters>& all);
/// Fails with `bad_input`, naming `shown` and the line, if counters_text() did not write this, or it is damaged.
[[nodiscard]] Result<std::vector<FileCounters>> parse_counters(std::string_view text, std::string_view shown);

}  // namespace iosig::trace
