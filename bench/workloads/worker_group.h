// The workers that perform a workload: threads that stand for its ranks (thread_workers.cpp), or MPI's processes
// (mpi_workers.cpp), each in a program of its own.
#pragma once

#include <memory>
#include <string>

#include "perform.h"

namespace iosig::workloads {

struct Job {
  Plan plan;
  std::string target;  ///< the file; where ranks have their own, what their names begin with
  bool force = false;  ///< replace what is there
  bool sync = false;   ///< the write phase ends when the data are on the device (fsync)
  bool through_mpiio = false;

  /// "TARGET", or "TARGET.7" where ranks have files of their own.
  [[nodiscard]] std::string path(std::uint32_t rank) const;
};

struct Outcome {
  Tally tally;
  double elapsed_s = 0;  ///< until the last rank is done, with opening, closing and making or comparing the data
};

class WorkerGroup {
 public:
  virtual ~WorkerGroup() = default;
  /// How many there are; 0: as many as one likes.
  [[nodiscard]] virtual std::uint32_t ranks() const { return 0; }
  /// This process reports for all workers.
  [[nodiscard]] virtual bool is_speaker() const { return true; }

  /// Makes the job's files, all or none. The same result in all processes.
  [[nodiscard]] virtual Result<void> create(const Job& job) = 0;
  /// All ranks at the same time. One rank's failure stops the others; the result is the same in all processes.
  [[nodiscard]] virtual Result<Outcome> run(const Job& job, Phase phase) = 0;
  /// Removes the files that `create` made.
  void remove_made();

 protected:
  Result<void> make(const std::string& path, bool force);

 private:
  std::vector<std::string> made_;
};

/// "TARGET: " before a message of `perform`, which does not know the name.
[[nodiscard]] Error named(Error error, const std::string& path);

/// Opens the rank's file and performs the phase: what every worker does for one rank.
[[nodiscard]] Result<Tally> perform_opened(const Job& job, Phase phase, std::uint32_t rank,
                                           Result<std::unique_ptr<File>> file, const std::function<bool()>& is_stopped);

/// The workers of this program; `threads` as told, or 0.
[[nodiscard]] Result<std::unique_ptr<WorkerGroup>> make_worker_group(std::uint32_t threads);
extern const bool is_mpi_program;

/// The signal when ^C or SIGTERM came, else 0. The first call arranges for that to be noticed; one more, seconds later,
/// then ends the program at once.
[[nodiscard]] int interruption();

}  // namespace iosig::workloads
