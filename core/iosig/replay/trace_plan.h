// What a replay of a trace will do: which files there must be beforehand, which streams access them, and in which order
// streams depend on each other. Found by one pass over the trace.
//
// A stream is a thread of a traced process. A file's *origin* is the stream and the path by which its bytes were
// written; bytes that were there before the trace have origin 0.
//
// Source: docs/references.md#pattern section 5, Trace-Replayer. Ours: the files that are made beforehand, the order
// between streams, and bytes that can be checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/base/origin.h"
#include "iosig/base/result.h"
#include "iosig/replay/trace_ops.h"
#include "iosig/trace/trace.h"

namespace iosig {

/// When an access begins, relative to the end of the stream's previous one.
struct ThinkTime {
  double scale = 1;            ///< of the trace's think time; 0: none
  std::int64_t fixed_ns = -1;  ///< before each access; -1: the trace's counts
  [[nodiscard]] std::int64_t of(std::int64_t traced_ns) const {
    constexpr std::int64_t longest_ns = INT64_MAX / 4;  // 73 years; can be added to a time
    if (fixed_ns >= 0) return fixed_ns;
    if (scale == 1) return std::min(traced_ns, longest_ns);
    return static_cast<std::int64_t>(std::min(scale * static_cast<double>(traced_ns), static_cast<double>(longest_ns)));
  }
};

struct TracePlanOptions {
  std::string files = {};                                     ///< a glob for trace::matches_file(); empty: all
  std::function<bool(std::string_view path)> is_wanted = {};  ///< empty: all
  ThinkTime think = {};
  std::uint32_t processes = 0;  ///< that replay; 0: one for each stream
  bool keeps_owners = false;    ///< fill PlannedFile::owners, which takes memory
};

/// Which origin a range of a file has at the end.
struct OwnedRange {
  std::int64_t end = 0;
  std::uint32_t origin = 0;  ///< number in TracePlan::origins; shared_origin
};
inline constexpr std::uint32_t shared_origin = UINT32_MAX;  ///< written by several streams: by any of them last

/// Paths between which files were renamed or linked.
struct FileGroup {
  bool is_checked = true;                 ///< false: what is where depends on the order of appends
  std::vector<WriteOrigin> origins = {};  ///< that its bytes can have
};

struct PlannedPath {
  std::string path;       ///< as in the trace
  std::string name = {};  ///< below the target; empty: it is not replayed
  std::uint32_t group = 0;
  std::int64_t initial_size = -1;  ///< of the file to make beforehand; -1: none
  bool is_directory = false;
  bool was_link = false;  ///< symlink(2), which is not replayed, gave this name
};

/// A file that has a name at the end.
struct FinalFile {
  std::uint32_t path = 0;
  std::int64_t size = 0;
  std::map<std::int64_t, OwnedRange> owners = {};  ///< by start; what lies between is a hole
  bool is_known = true;                            ///< false: too many ranges to keep, or its size depends on luck
};

/// The operation of `stream` with this number waits until the other one has ended.
struct StreamWait {
  std::uint64_t op = 0;
  std::uint32_t other_stream = 0;
  std::uint64_t other_op = 0;
};

/// The last operation of a stream before it enters a barrier.
struct BarrierEntry {
  std::uint32_t stream = 0;
  std::uint64_t op = 0;
};

struct PlannedStream {
  const trace::Process* process = nullptr;
  std::int32_t tid = 0;
  std::vector<StreamWait> waits = {};  ///< ascending
  std::vector<std::pair<std::uint64_t, std::uint32_t>> barriers =
      {};  ///< an operation, which barrier it follows; ascending
  std::uint64_t performed = 0;
  std::uint32_t worker = UINT32_MAX;  ///< the process that replays it; UINT32_MAX: it has nothing to replay
};

struct TracePlan {
  trace::Layer layer = trace::Layer::posix;
  std::string common;  ///< the directory whose place the target takes
  std::vector<PlannedPath> paths;
  std::unordered_map<std::string_view, std::uint32_t> numbers;  ///< of paths
  std::vector<FileGroup> groups;
  std::vector<WriteOrigin> origins;  ///< of bytes that streams write
  std::vector<PlannedStream> streams;
  std::vector<std::vector<BarrierEntry>> barriers;  ///< MPI calls at which ranks waited for each other
  std::vector<FinalFile> finals;
  std::vector<std::string> initial_directories, directories;  ///< to make beforehand; all that may be made. Sorted
  std::uint32_t workers = 0;
  std::uint64_t performed = 0, files = 0, initial_files = 0;
  std::int64_t initial_bytes = 0, room_bytes = 0, read_bytes = 0, written_bytes = 0;
  std::int64_t started_ns = 0;            ///< of the first replayed access, on the trace's clock
  double original_s = 0, expected_s = 0;  ///< expected: as quick as the original, with this think time
  double think_s = 0;                     ///< the sum over all streams that is asked for
  std::uint64_t mapped = 0, asynchronous = 0, failed = 0, unnamed = 0, left_out_files = 0;
  std::map<std::string, std::uint64_t, std::less<>> left_out;  ///< calls on replayed files, by name
  bool lacks_waits = false;                                    ///< too many to keep
  std::uint64_t identity = 0;                                  ///< differs between traces and selections

  /// Returns the number of the stream; UINT32_MAX: none.
  [[nodiscard]] std::uint32_t stream_of(const trace::Process* process, std::int32_t tid) const;
  /// Returns the number of the path, UINT32_MAX: none.
  [[nodiscard]] std::uint32_t path_of(std::string_view path) const;
  /// Returns the path of an access that is replayed as `op`; null: it is not replayed. `number`: path_of() its path.
  [[nodiscard]] const PlannedPath* replayed(const trace::Access& access, ReplayOp op, std::uint32_t number) const;

  std::unordered_map<const trace::Process*, std::vector<std::pair<std::int32_t, std::uint32_t>>> threads;
};

/// The bytes of a file that is made beforehand.
[[nodiscard]] inline WriteOrigin initial_origin(std::uint32_t path) { return {0, path}; }
/// The bytes that a stream writes through a path.
[[nodiscard]] inline WriteOrigin trace_origin(std::uint32_t stream, std::uint32_t path) {
  return {std::uint64_t{stream} + 1, path};
}

/// Reads the whole trace. Blocks that cannot be read go to `faults`. Fails as `infeasible` if nothing can be replayed,
/// and as `usage` if there are more streams than processes may be, and `options.processes` is 0.
/// Memory: some 200 bytes for each path and open file, 24 for each wait, 4 million waits at most.
[[nodiscard]] Result<TracePlan> plan_trace_replay(const trace::Trace& trace, const TracePlanOptions& options,
                                                  std::vector<Error>& faults);

}  // namespace iosig
