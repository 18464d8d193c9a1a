// Finds the collective MPI calls of a trace: which calls of the ranks belong together.
//
// Example: two ranks open /out, write it collectively twice, and close it. That is four collective calls of two members
// each: the open, the first write, the second write, the close.
//
// Traces do not have communicators. The n-th call of a name on a path counts as the same collective call in each rank;
// a barrier is one of all ranks, by the number of processes that it waits for. If ranks open a file for themselves
// alone (MPI_COMM_SELF), their calls are matched though they do not wait for each other: is_barrier() tells by the
// times.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/trace.h"

namespace iosig::trace {

struct CollectiveMember {
  const Process* process = nullptr;
  std::int32_t tid = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  /// Its n-th call may be another one than that of the others: the process ended in an orderly way, and yet has fewer
  /// barriers than they, as it was recorded from another moment on.
  bool may_be_another = false;
};

struct CollectiveCall {
  Call call = Call::none;
  std::string_view path;                  ///< empty: MPI_Barrier
  std::vector<CollectiveMember> members;  ///< in the order of starts, one for each process; two at least

  /// When the last member had begun.
  [[nodiscard]] std::int64_t complete_ns() const { return members.back().start_ns; }
  /// Whether no member ended before all members had begun.
  [[nodiscard]] bool is_barrier() const;
};

/// Returns the collective calls of the traces together, with times since the start of the first trace. Processes
/// without a rank, and those whose calls are not all recorded, are no members; nor are calls in flight. Blocks that
/// cannot be read go to `faults`. Memory: 32 bytes for each member.
[[nodiscard]] std::vector<CollectiveCall> collective_calls(std::span<const Trace> traces, std::vector<Error>& faults);

}  // namespace iosig::trace
