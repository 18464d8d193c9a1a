// Describes each file's reads, and its writes, in a trace as a pattern: which bytes were accessed in which order, by
// one process or by many that do alike.
//
// Example: each rank r of 1000 writes 4096 bytes at 4096 (1000 i + r) for i < 16. That is one stream, whose pattern is
// one nest over r and i.
//
// Source: docs/references.md#pattern sections 2.3 (local and global patterns) and 5. Ours: reads and writes apart;
// processes are folded by analyze/nest_folder one after the other, because accesses of different processes have no
// order in a pattern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"
#include "iosig/trace/trace.h"

namespace iosig::trace {

struct AccessStream {
  std::string path;
  Moves moves = Moves::reads;
  std::vector<std::int64_t> ids = {};  ///< processes, ascending
  std::uint64_t bytes = 0;             ///< transferred: the sum of the results
  /// Columns logical, length (as asked for), id. The accesses of a process are in the order of their starts, the
  /// processes one after the other.
  Pattern pattern = {};
};

struct AccessStreams {
  /// By id. The id of a process is its rank if the trace has no two processes of one rank; processes without a rank
  /// have the numbers after the highest rank, in order of host and pid. Else all are numbered in that order.
  std::vector<std::pair<std::int64_t, const Process*>> processes;
  std::vector<AccessStream> streams;  ///< most bytes first, then by path; reads before writes
  std::uint64_t left_out = 0;         ///< reads and writes that failed, had not returned, or have no offset
};

/// Whose accesses are in an order of their own. `threads`: the id is that of the process times 2^20, plus the thread's
/// number in the process, in the order of first accesses.
enum class InOrderOf : std::uint8_t { processes, threads };

/// Takes the accesses of `selection`, only reads or only writes if `only` says so. Calls of several layers on one file
/// are in one stream: select a layer. Blocks that cannot be read go to `faults`, as in Trace::for_each().
/// Memory: the descriptions, and a detector for each of the streams that are active at a time, 256 at most.
[[nodiscard]] Result<AccessStreams> access_streams(const Trace& trace, const Selection& selection, Moves only,
                                                   std::vector<Error>& faults, InOrderOf order = InOrderOf::processes);

}  // namespace iosig::trace
