// Replays write maps: as many processes as there are ranks, or fewer that take turns for them, do to a container or an
// ordinary file what the map says, started together, each rank in its order.
//
// Source: docs/references.md#pattern sections 3 and 3.3, MapReplayer. Ours: bytes that say which write they are from,
// so that replay/replay_check needs no copy; maps that are patterns are expanded while they are replayed.
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
  std::uint32_t processes = 0;  ///< 0, or more than there are ranks: one for each, max_replay_processes at most
  bool in_turn = false;         ///< no write begins before the one before it in the map has ended
  bool opens_in_turn = false;   ///< ranks open one after the other, so that writers' ids grow with them
  bool is_marked = false;       ///< each write has bytes of its own (origin_of), else all have the same ones
  bool syncs = false;
};

/// Told a few times a second how many writes or bytes are done; false ends the work as `system`, "interrupted".
using ReplayWatch = std::function<bool(std::uint64_t done)>;

/// A write's bytes: of its rank, and of where it begins in the rank's log as seen from the file, which tells two writes
/// of one place apart. What continues a write both here and there continues its bytes.
[[nodiscard]] inline WriteOrigin origin_of(std::int64_t rank, std::int64_t offset, std::int64_t physical) {
  return {static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(physical) - static_cast<std::uint64_t>(offset)};
}

/// Spans are from the first process's begin to the last one's end. All begin each step together.
struct WriteMetrics {
  std::uint32_t processes = 0;
  double open_s = 0;       ///< span
  double open_mean_s = 0;  ///< for each rank
  double write_s = 0;      ///< span; with the making of marked bytes
  double cpu_s = 0;        ///< in the writes alone, of all
  double sync_s = 0;       ///< span
  double close_s = 0;      ///< span
  double close_mean_s = 0;
};

/// Onto a target that make_target made.
[[nodiscard]] Result<WriteMetrics> replay_writes(const WriteMap& map, const ReplayTarget& target,
                                                 const ReplayOptions& options, const ReplayWatch& watch);

struct ReadMetrics {
  std::uint32_t processes = 0;
  double open_s = 0;       ///< span; of a container with the reading of its index
  double open_mean_s = 0;  ///< for each process
  double read_s = 0;       ///< span
  double cpu_s = 0;        ///< in the reads alone, of all
  std::uint64_t reads = 0;
  std::int64_t bytes = 0;
  std::int64_t memory_bytes = 0;  ///< of the index in one process; 0 of an ordinary file
};

/// Each rank reads what it wrote, in that order, by as many processes as would write.
[[nodiscard]] Result<ReadMetrics> replay_reads(const WriteMap& map, const ReplayTarget& target, std::uint32_t processes,
                                               const ReplayWatch& watch);
/// The file's blocks of `block` bytes, in turns by `readers` processes.
[[nodiscard]] Result<ReadMetrics> read_blocks(const ReplayTarget& target, std::uint32_t readers, std::int64_t block,
                                              const ReplayWatch& watch);

}  // namespace iosig
