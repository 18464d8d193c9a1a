// The batch job to which a redirect belongs, and whether that job has ended.
//
// A job is named by its batch system or process manager ("slurm:4711"). Without one, the session of its processes is
// the job ("session:4202"): a shell, a script and `mpirun` keep their session as long as they run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/process_life.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Whether the entry is of the job that a user calls `id`: "slurm:4711", only "4711", or "session:4202" (on this
/// machine since its last boot). An entry that names no job is only of its session.
[[nodiscard]] bool is_of_job(const JournalEntry& entry, std::string_view id);

struct JobState {
  Life life = Life::unknown;
  std::string why;  ///< what shows it, for a message: "process 4711 runs"
};

/// Whether the job of `entries` runs, which the user calls `id` (may be empty): `alive` while a process is in the
/// session of one of them, or has the job in its environment. Processes of this program do not count by their
/// environment, so a drain does not wait for itself; nor does the session of this process if it redirected for a batch
/// job that it is not in: that is the shell which submitted the job. `unknown`: an entry was made on another machine,
/// or where processes cannot be seen from here.
[[nodiscard]] JobState state_of_job(const std::vector<JournalEntry>& entries, std::string_view id = {});

/// Whether this process itself is in the job of `entry`, and would wait for itself.
[[nodiscard]] bool is_in_job(const JournalEntry& entry);

}  // namespace iosig
