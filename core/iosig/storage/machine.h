// Where discovery looks: this machine's sysfs and its administrators' tools, or what a test recorded of another's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// A program's name, without a directory, and its words.
using Command = std::vector<std::string>;

/// What the program prints to stdout. It is looked for in the system's own directories alone, since this may be root;
/// runs without a shell, with an empty environment (LC_ALL=C) and no input; what it says to stderr is dropped. Fails as
/// `system` when it is not installed, takes longer than 3 s (it is killed then, with what it has started), prints more
/// than 1 MB, or ends with another status than 0.
[[nodiscard]] Result<std::string> run_tool(const Command& command);

struct Machine {
  std::string sysfs = "/sys";
  std::function<Result<std::string>(const Command&)> run = run_tool;
};

}  // namespace iosig
