// Processes that do one thing together: started at once, each with its number, that wait for each other, take turns,
// and leave behind a few metrics.
//
// For programs of our own: it forks, and waits for its children. What they share lies in memory that they inherit.
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

struct WorkerGroupShared;  // in workers.cpp

/// One process of the group, in that process.
class Worker {
 public:
  Worker(WorkerGroupShared& shared, std::uint32_t number) : shared_(&shared), number_(number) {}

  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Waits until all have come here as often as this one.
  void barrier();
  /// Waits until turns 0 to `turn` - 1 have ended. Every turn must be somebody's.
  void wait_for_turn(std::uint64_t turn);
  void end_turn(std::uint64_t turn);
  /// For the watcher.
  void add_done(std::uint64_t count);
  /// What the workers's maker gets back; 0 until it is set.
  [[nodiscard]] double& figure(std::size_t which);

 private:
  WorkerGroupShared* shared_;
  std::uint32_t number_;
  std::uint32_t meetings_ = 0;
};

/// Calls `work` in `count` processes and returns the metrics of each. The first failure ends all of them (SIGKILL) and
/// is returned; so does `watch`, which gets the sum of add_done() a few times a second, by returning false
/// (`system`, "interrupted"). The processes ignore SIGINT and SIGTERM, which are for their maker, and die with it. No
/// other thread may be at work.
[[nodiscard]] Result<std::vector<WorkerMetrics>> run_worker_group(std::uint32_t count,
                                                                  const std::function<Result<void>(Worker&)>& work,
                                                                  const std::function<bool(std::uint64_t done)>& watch);

/// Seconds on a clock that all processes of this machine share.
[[nodiscard]] double steady_s();
/// Processor time of this process.
[[nodiscard]] double process_cpu_s();

}  // namespace iosig
