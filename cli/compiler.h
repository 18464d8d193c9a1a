// Identifies the compilers of this machine.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// Runs a command without input and returns its stdout; stderr goes to /dev/null. Fails with `system` if the command
/// cannot be started, its status is not 0, or it takes longer than `limit`, which ends it. 0: no limit.
[[nodiscard]] Result<std::string> output_of(const std::vector<std::string>& command,
                                            std::chrono::milliseconds limit = {});

/// docs/decisions/0004-gcc-12-or-later.md
inline constexpr int oldest_gcc = 12;

struct Compiler {
  bool is_clang = false;
  int major = 0;
};

/// Identifies a compiler by its predefined macros, which also works for wrappers and renamed compilers (`-dumpversion`
/// does not distinguish clang from GCC). `limit`: as above.
[[nodiscard]] Result<Compiler> ask_compiler(const std::string& name, std::chrono::milliseconds limit = {});

}  // namespace iosig::cli
