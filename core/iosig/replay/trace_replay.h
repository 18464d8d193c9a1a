// Replays the accesses of a trace onto a directory: each stream's in their order, with its think time, as calls of one
// process per stream, or of fewer.
//
// An access begins when the think time since the end of the stream's previous one is over, and when the operations that
// it must follow have ended (trace_survey.h). The delay of its dispatch is the time from then until its call begins:
// what the replay itself adds.
//
// Reads and writes are read(2) and write(2) where the file offset is right, else pread(2) and pwrite(2), of as many
// bytes as in the trace. Calls that were asynchronous are performed one after the other.
//
// Source: docs/references.md#pattern section 5, Trace-Replayer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/distribution.h"
#include "iosig/base/result.h"
#include "iosig/decide/predictors.h"
#include "iosig/prefetch/counts.h"
#include "iosig/replay/replay.h"
#include "iosig/replay/target_tree.h"
#include "iosig/replay/trace_content.h"
#include "iosig/replay/trace_plan.h"

namespace iosig {

struct TraceReplayOptions {
  PredictorKind prefetch = PredictorKind::kernel;  ///< what is read ahead
  ThinkTime think = {};
  bool is_marked = false;  ///< each byte written follows from its origin and offset, and each byte read is checked
};

/// The operations of one kind on a path. Asynchronous ones have no original duration.
struct StreamMetrics {
  std::uint32_t path = 0;
  StreamKind kind = StreamKind::read;
  std::int64_t original_bytes = 0, replayed_bytes = 0;
  Distribution original_ns = {}, replayed_ns = {};
};

struct TraceReplayMetrics {
  double elapsed_s = 0;                ///< from the start of the first process to the end of the last
  double io_s = 0, original_io_s = 0;  ///< sums of the calls' durations
  double think_s = 0;                  ///< sum of the times that passed before accesses since the stream's previous one
  double waited_s = 0;                 ///< of that, for other streams' operations
  Distribution delay_ns = {};          ///< of dispatch
  std::vector<StreamMetrics> streams = {};  ///< most original bytes first, then by path and kind
  std::uint64_t performed = 0, failed = 0, short_reads = 0, made_at_need = 0;
  std::string first_failure = {};  ///< of an operation that succeeded in the trace
  prefetch::Counts prefetched = {};
  WrongBytes wrong = {};  ///< that were read, if marked
  std::string wrong_file = {};
};

/// Makes the directories and files that must be there beforehand, and stores the files. Fails as `infeasible` if there
/// is no room, `system` if interrupted.
[[nodiscard]] Result<void> prepare_trace_replay(const TracePlan& plan, TargetTree& tree, bool is_marked,
                                                const ReplayWatch& watch);

/// Replays. Every file must be as prepare_trace_replay() made it. Fails if a write fails, or a file is a link that
/// somebody put there.
[[nodiscard]] Result<TraceReplayMetrics> replay_trace(const trace::Trace& trace, const TracePlan& plan,
                                                      const TargetTree& target, const TraceReplayOptions& options,
                                                      const ReplayWatch& watch);

/// Drops the files' pages from the page cache (posix_fadvise), after storing them. Other programs' files stay cached.
[[nodiscard]] Result<void> drop_cached_pages(const TracePlan& plan, TargetTree& tree);

struct TraceCheckMetrics {
  std::uint64_t files = 0, unchecked_files = 0, wrong_sizes = 0;
  std::int64_t bytes = 0;
  WrongBytes wrong = {};
  std::string first_fault = {};  ///< the file, and what is wrong
};
/// Reads every file that the trace leaves, and compares its size and each byte with what the trace says who wrote it
/// last. The replay must have been marked, and the plan must keep owners.
[[nodiscard]] Result<TraceCheckMetrics> check_trace_replay(const TracePlan& plan, TargetTree& tree,
                                                           const ReplayWatch& watch);

}  // namespace iosig
