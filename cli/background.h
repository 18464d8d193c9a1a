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
  pid_t pid = 0;           ///< 0: there was nothing to do
  std::string unit;        ///< the user service whose process that is; empty: a process of its own
  std::string no_service;  ///< why there is none, although this user has a systemd
  std::string log_path;
  std::vector<JournalEntry> taken, busy;  ///< `busy`: other drains have them
  std::vector<Error> refused;
};

/// Starts a drain of `entries` (enact/drain.h) that survives this process: where a systemd of this user runs, the
/// transient service `iosig-drain-ID` (user_service.h), which runs `iosig` with the words `as_service`; else a process.
/// A process has a session of its own, the root as its working directory and no descriptor that this process inherited.
///
/// The drain has the lowest CPU priority, the idle I/O class, and the log `<state directory>/drain.log`. Fails if the
/// state directory cannot be written. Call it while there is one thread.
[[nodiscard]] Result<StartedDrain> start_drain(const std::vector<JournalEntry>& entries, DrainOptions options,
                                               const std::vector<std::string>& as_service);

struct DrainedHere {
  std::size_t gave_up = 0;     ///< redirects whose data stay where they are; their records say why
  std::vector<Error> refused;  ///< redirects that could not be taken on
};

/// Drains `entries` in this process: what the service runs. Events go to stdout.
[[nodiscard]] Result<DrainedHere> drain_here(const std::vector<JournalEntry>& entries, DrainOptions options);

/// Closes what the caller left open for programs that it starts, but for `kept`: a pipe of a script must end with the
/// script. All other descriptors of this command are closed on exec.
void close_inherited(int kept = -1);

/// Says who drains: "process 4711", "user service iosig-drain-5f0c9a3e11d2b764 (process 4711)".
[[nodiscard]] std::string text_of(const StartedDrain& started);

}  // namespace iosig::cli
