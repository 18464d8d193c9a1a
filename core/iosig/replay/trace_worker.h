// One process of a replay of a trace: performs the operations of its streams. Part of trace_replay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "iosig/replay/file_key.h"
#include "iosig/replay/replay_prefetch.h"
#include "iosig/replay/target_tree.h"
#include "iosig/replay/trace_content.h"
#include "iosig/replay/trace_replay.h"
#include "iosig/replay/worker_group.h"
#include "iosig/trace/accesses.h"

namespace iosig {

/// The number of operations of a stream that have ended, for the processes that wait for them.
struct alignas(64) StreamProgress {
  std::atomic<std::uint64_t> ended;
};

class TraceWorker {
 public:
  TraceWorker(const trace::Trace& trace, const TracePlan& plan, TargetTree tree, const TraceReplayOptions& options,
              std::span<StreamProgress> progress, std::uint32_t number);
  /// Performs all operations, from `began_ns` on the monotonic clock.
  [[nodiscard]] Result<void> run(Worker& worker, std::int64_t began_ns);
  /// Appends what it has measured to `bytes`.
  void append_metrics(std::string& bytes) const;

 private:
  struct OpenFile {
    Fd fd;
    std::int64_t position = 0;  ///< of the descriptor; -1: unknown
    int references = 1;
    bool appends = false;
  };
  /// The operation that is being performed.
  struct Step {
    const trace::Access* access = nullptr;
    ReplayOp op = ReplayOp::none;
    const PlannedPath* path = nullptr;
    std::uint32_t path_number = 0, stream = 0;
  };

  [[nodiscard]] ReadsOfFiles coming_reads(const trace::Trace& trace);
  [[nodiscard]] bool is_mine(const trace::Access& access, Step& step);
  bool wait_for(std::uint32_t stream, std::uint64_t op);
  bool wait_for_streams(const Step& step, std::uint64_t op);
  Result<void> perform(const Step& step, std::int64_t due_ns);
  Result<OpenFile*> file_of(const Step& step);
  Result<void> open(const Step& step);
  void close(const Step& step);
  Result<void> move(const Step& step, OpenFile& file);
  std::int64_t transfer(OpenFile& file, const Step& step, std::int64_t done, std::size_t length);
  std::int64_t call(const Step& step, OpenFile* file);
  void note(const Step& step, std::int64_t moved);
  void note_failure(const Step& step, int error_number);
  void check_read(const Step& step, std::int64_t moved);
  [[nodiscard]] std::string shown(const PlannedPath& path) const;
  void grow_buffer(std::size_t bytes);

  const TracePlan& plan_;
  TargetTree tree_;
  const TraceReplayOptions& options_;
  std::span<StreamProgress> progress_;
  std::uint32_t number_;
  std::unique_ptr<ReplayPrefetch> prefetch_;
  std::vector<Error> faults_;
  trace::Selection selection_;
  std::unique_ptr<trace::Accesses> accesses_;
  std::unordered_map<FileKey, OpenFile, FileKeyHash> open_;
  std::vector<std::uint64_t> ops_;                            ///< of each stream
  std::vector<std::size_t> next_wait_, next_barrier_;         ///< of each stream
  std::unordered_map<std::uint64_t, StreamMetrics> streams_;  ///< by path and kind
  std::unique_ptr<std::byte, void (*)(void*)> buffer_;
  std::size_t buffer_bytes_ = 0;
  ContentChecker checker_;
  std::int64_t call_begin_ns_ = 0, call_end_ns_ = 0;
  // The answers of the plan to the latest access.
  const char* last_path_ = nullptr;
  std::uint32_t last_path_number_ = UINT32_MAX, last_stream_ = UINT32_MAX;
  const trace::Process* last_process_ = nullptr;
  std::int32_t last_tid_ = 0;
  TraceReplayMetrics sums_;
};

}  // namespace iosig
