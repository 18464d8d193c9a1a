// Runs a drain in a process that survives the shell, the terminal and the job that started it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "iosig/enact/drain.h"

namespace iosig::cli {

/// The default for DrainOptions::give_up_after_s: a drain whose program never comes does not stay for ever.
inline constexpr double drain_timeout_s = 7.0 * 86400;

struct StartedDrain {
  pid_t pid = 0;  ///< 0: there was nothing to do
  std::string log_path;
  std::vector<JournalEntry> taken, busy;  ///< `busy`: other drains have them
  std::vector<Error> refused;
};

/// Starts a process that drains `entries` (enact/drain.h). It has a session of its own, the root as its working
/// directory, the log `<state directory>/drain.log` as stdout and stderr, no descriptor that this process inherited,
/// the lowest CPU priority and the idle I/O class. Fails if the state directory cannot be written. Call it while there
/// is one thread.
[[nodiscard]] Result<StartedDrain> start_drain(const std::vector<JournalEntry>& entries, DrainOptions options);

}  // namespace iosig::cli
