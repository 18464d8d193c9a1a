// Runs a program with libiosig-preload.so, for `iosig run` and `iosig trace`.
#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "iosig/base/result.h"

namespace iosig::cli {

/// An environment variable for the program.
struct Setting {
  std::string name, value;
};

/// Returns LD_PRELOAD with this library before those that it has.
[[nodiscard]] Result<Setting> preload_setting();
/// Returns the variable by which the library knows this program: it starts the drains of files that are closed.
[[nodiscard]] Setting program_setting();
/// Returns the variable that lets programs with AddressSanitizer run: it ends a program that has a library before its
/// own, unless it is told not to look. The preloaded library passes calls on to the next one, which is the sanitizer's
/// then. Other programs do not read the variable.
[[nodiscard]] Setting sanitizer_setting();

/// Tells the library that containers are directories to a program that is only traced: it finds what it finds without
/// the recorder. Empty if this process runs under `iosig run`, where they are files.
[[nodiscard]] std::vector<Setting> settings_of_tracing_alone();
/// Undoes that, for `iosig run` in a traced program.
[[nodiscard]] std::vector<Setting> settings_of_running();

/// For this command alone, not for a program that it becomes: `iosig storage list | head` ends without an error
/// message, and the exit status of child processes is not lost if the parent process ignores it.
void reset_ignored_signals();

/// Replaces this process by the program, and returns only if that fails, with the exit status of a shell that cannot
/// run a command. Notes if no library can intercept the program's calls. `is_dry`: prints the command and returns.
[[nodiscard]] int become_program(const std::vector<std::string>& command, const std::vector<Setting>& settings,
                                 bool is_dry, Console& console);

}  // namespace iosig::cli
