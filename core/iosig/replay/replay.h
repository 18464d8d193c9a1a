// Replays write maps: one process for each rank, or fewer processes that share the ranks, perform the writes of the map
// on a container or an ordinary file. All processes start together; each rank keeps its order.
//
// Source: docs/references.md#pattern sections 3 and 3.3, MapReplayer. Ours: bytes that identify the write that they are
// from, so replay/replay_check needs no copy; maps that are patterns are expanded during the replay.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "iosig/base/origin.h"
#include "iosig/replay/replay_file.h"
#include "iosig/replay/write_map.h"

namespace iosig {

inline constexpr std::uint32_t max_replay_processes = 1024;

struct ReplayOptions {
  /// Number of processes. 0, or more than the number of ranks: one for each rank, max_replay_processes at most.
  std::uint32_t processes = 0;
  bool in_turn = false;        ///< a write begins only after the previous one in the map has ended
  bool opens_in_turn = false;  ///< ranks open one after the other, so the ids of their writers increase with the rank
  bool is_marked = false;      ///< each write has its own bytes (origin_of); otherwise all writes have the same
  bool syncs = false;
};

/// Called a few times a second with the number of writes or bytes done; false ends the work as `system`, "interrupted".
using ReplayWatch = std::function<bool(std::uint64_t done)>;

/// Identifies the bytes of a write: by its rank, and by the difference between its offsets in the rank's log and in the
/// file, which distinguishes two writes to one place. A write that continues another one in both the log and the file
/// continues its bytes.
[[nodiscard]] inline WriteOrigin origin_of(std::int64_t rank, std::int64_t offset, std::int64_t physical) {
  return {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(physical) - static_cast<std::uint64_t>(offset)};
}

/// A span is from the start of the first process to the end of the last. All processes begin each step together.
struct WriteMetrics {
  std::uint32_t processes = 0;
  double open_s = 0;       ///< span
  double open_mean_s = 0;  ///< for each rank
  double write_s = 0;      ///< span; includes filling the marked bytes
  double cpu_s = 0;        ///< processor time in the writes alone, sum of all processes
  double sync_s = 0;       ///< span
  double close_s = 0;      ///< span
  double close_mean_s = 0;
};

/// Writes the map to a target that make_target() created.
[[nodiscard]] Result<WriteMetrics> replay_writes(const WriteMap& map, const ReplayTarget& target,
                                                 const ReplayOptions& options, const ReplayWatch& watch);

struct ReadMetrics {
  std::uint32_t processes = 0;
  double open_s = 0;       ///< span; for a container, includes reading its index
  double open_mean_s = 0;  ///< for each process
  double read_s = 0;       ///< span
  double cpu_s = 0;        ///< processor time in the reads alone, sum of all processes
  std::uint64_t reads = 0;
  std::int64_t bytes = 0;
  std::int64_t memory_bytes = 0;  ///< of the index in one process; 0 for an ordinary file
};

/// Each rank reads its own writes, in order, with as many processes as replay_writes() would use.
[[nodiscard]] Result<ReadMetrics> replay_reads(const WriteMap& map, const ReplayTarget& target, std::uint32_t processes,
                                               const ReplayWatch& watch);
/// Reads the file in blocks of `block` bytes, distributed round-robin over `readers` processes.
[[nodiscard]] Result<ReadMetrics> read_blocks(const ReplayTarget& target, std::uint32_t readers, std::int64_t block,
                                              const ReplayWatch& watch);

}  // namespace iosig
