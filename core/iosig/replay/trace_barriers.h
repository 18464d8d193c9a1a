// Which operations of a replay wait for other streams at the collective MPI calls of the trace. Part of trace_plan.
//
// An operation that begins after all ranks had entered a barrier follows each rank's last operation before it entered.
// So ranks stay in step as in the original, and as each operation waits only for operations that began earlier in the
// trace, no wait is in vain: not if ranks died, nor if their parts are missing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "iosig/replay/trace_plan.h"
#include "iosig/trace/collectives.h"

namespace iosig {

class TraceBarriers {
 public:
  /// Of the calls, those that were barriers count, by their times.
  TraceBarriers(std::span<const trace::CollectiveCall> calls, TracePlan& plan);
  /// Takes the operation `op` of a stream, in the order of the stream.
  void add(std::uint32_t stream, std::uint64_t op, const trace::Access& access);
  /// Completes the plan's barriers.
  void finish();

 private:
  struct Passage {
    std::int64_t entered_ns = 0, complete_ns = 0;
    std::uint32_t barrier = 0;
  };
  struct Thread {
    std::vector<Passage> passages = {};  ///< in the order of entries
    std::size_t entered = 0, passed = 0;
    std::uint32_t stream = UINT32_MAX;
    std::uint64_t ops = 0;
  };
  void enter(Thread& thread, std::uint64_t ops);
  void wait(std::uint32_t stream, std::uint64_t op, std::uint32_t barrier);

  TracePlan& plan_;
  std::map<std::pair<const trace::Process*, std::int32_t>, Thread> threads_;
  std::uint64_t kept_ = 0;
};

}  // namespace iosig
