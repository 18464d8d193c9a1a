// Writes a trace from the calls that other tools recorded: gives numbers to processes, threads and paths, makes the
// parts and the manifest. The readers of the formats (csv.h, strace.h) call it.
//
// The trace is made in a draft directory beside its path and renamed when it is complete: a failure, or a kill, leaves
// no incomplete trace at the path.
//
// Memory: 64 bytes for each of at most 400,000 calls that are not written yet; the paths; a few hundred bytes for each
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/trace/counters.h"
#include "iosig/trace/part_write.h"

namespace iosig::trace {

class TraceWriter {
 public:
  struct Totals {
    std::uint64_t processes = 0, threads = 0, calls = 0, files = 0;  ///< files: different paths
    std::uint64_t counters = 0;                                      ///< of files without calls
  };
  using ProcessNumber = std::uint32_t;
  using ThreadNumber = std::uint32_t;

  /// Prepares a trace at `path`, which must not exist or be an empty directory (`usage` otherwise).
  [[nodiscard]] static Result<TraceWriter> make(const std::string& path);
  TraceWriter(TraceWriter&& other) noexcept = default;
  TraceWriter& operator=(TraceWriter&&) = delete;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  /// Removes the draft.
  ~TraceWriter();

  [[nodiscard]] ProcessNumber add_process(std::string host, std::int32_t pid, std::int32_t parent_pid = 0);
  /// A fact of a process (see Facts); the latest value of a key counts, except for `argument`.
  void add_fact(ProcessNumber process, std::string_view key, std::string value);
  [[nodiscard]] const Facts& facts_of(ProcessNumber process) const { return processes_[process].facts; }
  void remove_facts(ProcessNumber process) { processes_[process].facts.clear(); }
  /// add() and finish() fail with `system` once this returns true.
  void stop_if(std::function<bool()> is_interrupted) { is_interrupted_ = std::move(is_interrupted); }
  /// Calls that the other tool did not keep.
  void count_lost(ProcessNumber process, std::uint64_t calls) { processes_[process].lost_calls += calls; }
  /// Says which calls the other tool records, if it does not record all: as the manifest's `calls`.
  void set_selected_calls(std::string calls) { selected_calls_ = std::move(calls); }
  /// Says when the job began, nanoseconds since 1970: it has no call before.
  void set_job_start(std::uint64_t start) { least_start_ = std::min(least_start_, start); }
  /// Adds sums over accesses of which the other tool has no single calls.
  void add_counters(FileCounters counters) { counters_.push_back(std::move(counters)); }
  [[nodiscard]] bool has_calls(ProcessNumber process) const { return processes_[process].parts > 0; }
  /// Each thread has a part. Several parts may have the same tid.
  [[nodiscard]] ThreadNumber add_thread(ProcessNumber process, std::int32_t tid);

  /// Adds a call. Its start (not 0) and end (0: it had not returned) are nanoseconds since 1970. `path` and, of a call
  /// with two paths, `second` replace Slot::path and Slot::length unless they are empty. `id`: as PartWriter::add.
  [[nodiscard]] Result<void> add(ThreadNumber thread, Slot call, std::string_view path, std::string_view second = {},
                                 std::uint64_t id = 0);

  /// Writes what is left and makes the trace appear at its path. `source`: the format, for the manifest.
  [[nodiscard]] Result<Totals> finish(std::string_view source);

 private:
  struct ProcessState {
    std::string host;
    std::int32_t pid = 0, parent_pid = 0;
    std::uint32_t parts = 0;
    std::uint64_t lost_calls = 0;
    Facts facts;
    std::unordered_map<std::uint32_t, std::uint32_t> names;  ///< ids of paths (numbers in paths_)
  };
  struct ThreadState {
    ProcessNumber process = 0;
    std::int32_t tid = 0;
    std::optional<PartWriter> part;  ///< from the first call on
  };

  TraceWriter(std::string path, std::string draft, Fd directory);
  [[nodiscard]] Result<void> make_part(ThreadState& thread, std::uint64_t start);
  std::uint32_t name_of_path(ThreadState& thread, std::string_view path);
  [[nodiscard]] Result<void> flush_all();
  [[nodiscard]] Result<void> write_file(const std::string& name, const std::string& text) const;

  std::function<bool()> is_interrupted_;
  std::string selected_calls_;
  std::string path_, draft_;             ///< draft_ empty: there is none
  std::unique_ptr<const Fd> directory_;  ///< parts refer to it
  std::unique_ptr<Packing> packing_;
  std::uint64_t first_key_ = 0;
  std::vector<ProcessState> processes_;
  std::vector<ThreadState> threads_;
  std::vector<FileCounters> counters_;
  std::unordered_map<std::string, std::uint32_t> paths_;
  std::uint64_t calls_ = 0, unwritten_ = 0, least_start_ = UINT64_MAX;
};

}  // namespace iosig::trace
