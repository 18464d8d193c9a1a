// Compares the clocks of hosts by calls that wait for each other: barriers, and MPI calls on files of many processes.
//
// No process leaves such a call before all have entered it. So each call that processes of two hosts make together says
// between which bounds one clock is ahead of the other: at least by the latest begin here less the earliest end there,
// at most by the earliest end here less the latest begin there. The best guess in between is the difference of the
// earliest ends: after a barrier all processes go on at almost the same time.
//
// Example: on host a the processes enter a barrier at 10 s and 14 s, and leave it at 14 s; on host b one enters at 109
// s and leaves at 114 s. Then the clock of b is ahead of that of a by 95 s at least (109 - 14), by 100 s at most (114 -
// 14), and most likely by 100 s (114 - 14).
//
// Source: ours; bounds that most calls agree on, as Marzullo's algorithm finds them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace iosig::trace {

/// One call of one process, by the process's clock.
struct TimedCall {
  std::uint32_t clock = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

/// How sure it is that no process left a call before all had entered it. If two clocks have calls of several kinds in
/// common, only those of the surest kind count.
enum class JoinedKind : std::uint8_t {
  barrier,     ///< of all processes
  file,        ///< the processes may have opened the file each for itself (MPI_COMM_SELF)
  moves_data,  ///< likewise, and a call ends when its own data are moved
};

/// Calls of processes that wait for each other.
struct JoinedCall {
  JoinedKind kind = JoinedKind::barrier;
  std::vector<TimedCall> members = {};
};

enum class ClockState : std::uint8_t {
  reference,      ///< the clock with which others are compared
  alone,          ///< no call in common: not known how far it is ahead
  contradictory,  ///< not more than half of the calls agree: likewise
  close,          ///< not ahead by more than the calls differ among themselves: left as it is
  ahead,
};

struct ClockDifference {
  ClockState state = ClockState::alone;
  std::int64_t ahead_ns = 0;                     ///< of the reference; negative: behind; 0 unless `ahead`
  std::int64_t at_least_ns = 0, at_most_ns = 0;  ///< bounds that the agreeing calls give; of `ahead` and `close`
  std::uint64_t calls = 0, agreeing = 0;
};

/// Compares the clocks 0 to `count` - 1. The reference is that of the first member of the first call. A clock that has
/// no call in common with it is compared by way of those that have. Without calls, every clock is alone.
[[nodiscard]] std::vector<ClockDifference> clock_differences(std::span<const JoinedCall> calls, std::uint32_t count);

}  // namespace iosig::trace
