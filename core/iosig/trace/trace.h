// Reads a trace: a directory with a part for each thread (part.h) and a manifest. Puts all parts on one clock.
//
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/trace/calls.h"
#include "iosig/trace/clock_differences.h"
#include "iosig/trace/counters.h"
#include "iosig/trace/open_places.h"
#include "iosig/trace/part.h"

namespace iosig::trace {

inline constexpr std::string_view trace_schema = "iosig.trace/1";

/// Code of a program or library that comes from the lines of a `--source`.
struct SelectedCode {
  std::string source, object;  ///< as in the manifest; a path
  std::uint64_t lines = 0, code_bytes = 0;
};

struct Process {
  std::uint64_t key = 0;  ///< PartHeader::process
  std::string host;
  std::uint64_t clock = 0;  ///< processes with equal ones have comparable times, in other traces, too
  std::int32_t pid = 0, parent_pid = 0;
  std::optional<std::int64_t> rank, ranks;
  std::string program, directory;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<SelectedCode> selected_code;
  std::set<std::string> replaced_code;  ///< libraries that were replaced on disk before `--source` searched them
  bool has_no_lines = false;            ///< the program has no line information, which `--source` needed
  OpenPlaces open_places;               ///< of programs that have line tables
  std::unordered_map<std::uint32_t, std::string> names;  ///< paths by id
};

/// A call. Times are nanoseconds since Trace::started_ns().
struct Access {
  std::uint64_t id = 0, parent = 0;  ///< unique in the trace; 0: no parent
  const Process* process = nullptr;
  std::int32_t tid = 0;
  Call call = Call::none;
  std::uint16_t flags = 0;  ///< SlotFlag
  std::uint32_t file = 0;   ///< open file of the process; 0: none
  std::string_view path;    ///< of the call or of its file; empty: none, or not known
  /// The new name of `rename` and `link`, what `symlink` leads to as the program said it; empty: none, or not known.
  std::string_view second_path;
  std::int32_t fd = -1;  ///< -1: none
  std::int64_t offset = no_offset, length = no_length;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t result = 0;
  bool is_in_flight = false;  ///< it had not returned: there is neither end nor result
};

/// Returns whether the path matches the glob; one without a slash is for the path's last component (fnmatch(3) without
/// flags).
[[nodiscard]] bool matches_file(const std::string& glob, std::string_view path);

/// Which accesses are passed on.
struct Selection {
  std::optional<Layer> layer = {};
  /// A glob for matches_file(); empty: all.
  std::string files = {};
  /// Returns whether the process's accesses are wanted; empty: all are.
  std::function<bool(const Process&)> processes = {};

  // Blocks without a wanted access are not read, which saves most of the time. Unwanted accesses of other blocks are
  // passed on.
  std::int64_t ended_since_ns = INT64_MIN;  ///< wanted: accesses that ended then or later, or have not ended
  std::uint64_t call_set = UINT64_MAX;      ///< wanted: calls whose bit (call % 64) is set
  std::uint64_t naming_set = naming_calls;  ///< likewise, always: without them, later accesses may have no path
};

/// A part that cannot be read at all.
struct UnreadablePart {
  std::string name;
  Error error;
};

/// A clock of the trace: that of a host, or of a rank if the trace does not know its host.
struct HostClock {
  std::string name;            ///< host, or "rank 3"
  std::string reference = {};  ///< the name of the reference; empty: there is none
  ClockDifference difference = {};
};

class Trace {
 public:
  /// Opens the trace in `directory`; reads everything except blocks of calls. Fails if the directory cannot be read, if
  /// it has no part (`bad_input`), or if no part can be read (the first part's error).
  /// Memory: some 70 bytes for each block of some 500 calls, and the names of files.
  [[nodiscard]] static Result<Trace> open(const std::string& directory);

  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] const Process& process_of(const Part& part) const { return processes_.at(part.header.process); }
  [[nodiscard]] const std::unordered_map<std::uint64_t, Process>& processes() const { return processes_; }
  [[nodiscard]] const std::vector<UnreadablePart>& unreadable() const { return unreadable_; }
  /// The manifest's text; empty: there is none.
  [[nodiscard]] const std::string& manifest() const { return manifest_; }
  /// When the earliest call began: nanoseconds since 1970.
  [[nodiscard]] std::int64_t started_ns() const { return started_ns_; }
  /// Sums over accesses that are no calls of the trace. Traces of other tools may have them, and nothing else.
  [[nodiscard]] const std::vector<FileCounters>& counters() const { return counters_; }
  /// Processes without a part, because none could be made, and their calls (of several nodes: at least so many).
  [[nodiscard]] std::uint64_t unrecorded_processes() const { return unrecorded_processes_; }
  [[nodiscard]] std::uint64_t unrecorded_calls() const { return unrecorded_calls_; }
  /// Returns how many parts of threads are not there though their processes had them: they could not be made, or were
  /// removed. At least: of a process without any part, and behind the last one, nothing is known.
  [[nodiscard]] std::uint64_t missing_parts() const;
  /// Hosts whose parts do not say how long a tick is: their durations are wrong.
  [[nodiscard]] const std::vector<std::string>& hosts_without_clock() const { return hosts_without_clock_; }
  /// How the clocks of hosts differed. All times are by the reference's clock, as far as it is known how far others are
  /// ahead. Empty: there is one clock. Of traces that are read together, also clocks that differ from other traces'.
  [[nodiscard]] const std::vector<HostClock>& host_clocks() const { return host_clocks_; }

  /// When a part's clock showed so many ticks, since started_ns().
  [[nodiscard]] std::int64_t time_of(std::size_t part, std::uint64_t ticks) const { return clocks_[part].at(ticks); }
  [[nodiscard]] double ns_per_tick(std::size_t part) const { return static_cast<double>(clocks_[part].ns_per_tick); }
  /// The calls of a part's block.
  [[nodiscard]] Result<std::vector<PartCall>> calls_of(std::size_t part, std::size_t block) const;

  /// Calls `take` for each access that Accesses passes on. A failure of `take` stops.
  [[nodiscard]] Result<void> for_each(const std::function<Result<void>(const Access&)>& take,
                                      const Selection& selection, std::vector<Error>& faults) const;

 private:
  friend class Accesses;
  friend Result<std::vector<Trace>> open_traces(std::span<const std::string> directories);
  /// Takes ticks of a part to nanoseconds since started_ns().
  struct Clock {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
    long double ns_per_tick = 1;
    [[nodiscard]] std::int64_t at(std::uint64_t ticks_then) const;
  };
  /// Calls that are together: a block, or the loose calls of a part.
  struct Batch {
    std::int64_t start_ns;
    std::uint32_t part;
    std::uint32_t block;  ///< number in the part; loose_calls
  };
  static constexpr std::uint32_t loose_calls = UINT32_MAX;

  void add_process(const Part& part);
  void read_unrecorded(const std::string& shown);
  void set_clocks();
  [[nodiscard]] bool has_impossible_times() const;
  /// Shifts the clocks of hosts to that of one of them, by calls that their processes made together.
  static void align(std::span<Trace> traces);
  void shift_clocks(const std::vector<HostClock>& found,
                    const std::unordered_map<const Process*, std::uint32_t>& place_of,
                    const std::unordered_map<std::uint64_t, std::uint32_t>& places, bool is_alone);
  void list_batches();
  [[nodiscard]] std::string shown(const Part& part) const;

  std::string path_;
  Fd directory_;
  std::string manifest_;
  std::vector<Part> parts_;
  std::vector<Clock> clocks_;  ///< of each part
  std::vector<Batch> batches_;
  std::unordered_map<std::uint64_t, Process> processes_;
  std::vector<UnreadablePart> unreadable_;
  std::vector<FileCounters> counters_;
  std::vector<std::string> hosts_without_clock_;
  std::vector<HostClock> host_clocks_;
  std::int64_t started_ns_ = 0;
  std::uint64_t unrecorded_processes_ = 0, unrecorded_calls_ = 0;
};

/// Opens traces to be read together: the clocks of hosts in different ones are aligned, too. Fails as Trace::open().
[[nodiscard]] Result<std::vector<Trace>> open_traces(std::span<const std::string> directories);

}  // namespace iosig::trace
