// The source of discovery: this machine's sysfs and administration tools, or what a test recorded of another machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// A program's name, without a directory, and its arguments.
using Command = std::vector<std::string>;

/// Runs a program and returns its standard output. Searches only the system's own directories, since the caller may be
/// root. Runs without a shell, with an empty environment (LC_ALL=C) and no input; discards stderr. Fails with `system`
/// if the program is not installed, takes longer than 3 s (then it is killed with all its children), prints more than 1
/// MB, or exits with a status other than 0.
[[nodiscard]] Result<std::string> run_tool(const Command& command);

struct Machine {
  std::string sysfs = "/sys";
  std::function<Result<std::string>(const Command&)> run = run_tool;
};

}  // namespace iosig
