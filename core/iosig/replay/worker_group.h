// Worker groups: processes that start together, each with a number. They wait for each other at barriers, take turns,
// and leave a few metrics.
//
// For our own programs: forks and waits for its children. The shared state is in memory that the children inherit.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

inline constexpr std::size_t worker_metrics = 12;
using WorkerMetrics = std::array<double, worker_metrics>;

struct WorkerGroupShared;  // in worker_group.cpp

/// A process's own view of its membership in the group.
class Worker {
 public:
  Worker(WorkerGroupShared& shared, std::uint32_t number) : shared_(&shared), number_(number) {}

  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Waits until all workers have called it as often as this one.
  void barrier();
  /// Waits until turns 0 to `turn` - 1 have ended. Every turn must belong to a worker.
  void wait_for_turn(std::uint64_t turn);
  void end_turn(std::uint64_t turn);
  /// Adds to the sum that `watch` gets.
  void add_done(std::uint64_t count);
  /// A metric of this worker, which run_worker_group() returns; 0 until it is set.
  [[nodiscard]] double& figure(std::size_t which);

 private:
  WorkerGroupShared* shared_;
  std::uint32_t number_;
  std::uint32_t meetings_ = 0;
};

/// Calls `work` in `count` processes and returns the metrics of each. `watch` gets the sum of add_done() a few times a
/// second. The first failure of a process is returned, and ends all of them (SIGKILL); if `watch` returns false, all
/// end too (`system`, "interrupted"). The processes ignore SIGINT and SIGTERM, which their parent handles, and die with
/// it. The caller must have no other thread.
[[nodiscard]] Result<std::vector<WorkerMetrics>> run_worker_group(std::uint32_t count,
                                                                  const std::function<Result<void>(Worker&)>& work,
                                                                  const std::function<bool(std::uint64_t done)>& watch);

/// Raises the soft limit of this process's descriptors to the hard limit.
void allow_many_descriptors();

/// Returns seconds on a clock that all processes of this machine share.
[[nodiscard]] double steady_s();
/// Returns the processor time of this process in seconds.
[[nodiscard]] double process_cpu_s();

}  // namespace iosig
