// Ranks as threads of one process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "worker_group.h"

namespace iosig::workloads {
namespace {

constexpr std::uint32_t usual_threads = 64;

class ThreadWorkers : public WorkerGroup {
 public:
  explicit ThreadWorkers(std::uint32_t threads) : threads_(threads > 0 ? threads : usual_threads) {}

  Result<void> create(const Job& job) override {
    const std::uint32_t files = job.plan.is_one_file ? 1 : job.plan.ranks;
    for (std::uint32_t rank = 0; rank < files; ++rank)
      if (auto made = make(job.path(rank), job.force); !made) {
        remove_made();
        return made;
      }
    return {};
  }

  Result<Outcome> run(const Job& job, Phase phase) override {
    std::atomic<std::uint32_t> next = 0;
    std::atomic<bool> has_failed = false;
    std::mutex mutex;  // of the two below
    Tally total;
    std::optional<Error> failure;
    const auto work = [&] {
      for (std::uint32_t rank = next++; rank < job.plan.ranks && !has_failed; rank = next++) {
        const auto tally = perform_opened(job, phase, rank, open_posix(job.path(rank), phase == Phase::write),
                                          [&] { return has_failed || interruption() != 0; });
        const std::lock_guard lock(mutex);
        if (tally) total += *tally;
        if (tally || has_failed) continue;  // what stops after a failure is none
        has_failed = true;
        failure = tally.error();
      }
    };
    const auto begin = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t i = 0; i < std::min(threads_, job.plan.ranks); ++i) threads.emplace_back(work);
    }
    if (failure) return pass_on(*failure);
    return Outcome{total, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  }

 private:
  std::uint32_t threads_;
};

}  // namespace

const bool is_mpi_program = false;

Result<std::unique_ptr<WorkerGroup>> make_worker_group(std::uint32_t threads) {
  return std::make_unique<ThreadWorkers>(threads);
}

}  // namespace iosig::workloads
