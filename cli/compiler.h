// Identifies the compilers of this machine.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// Runs a command and returns its stdout; stderr goes to /dev/null. Fails with `system` if the command cannot be
/// started or its status is not 0.
[[nodiscard]] Result<std::string> output_of(const std::vector<std::string>& command);

/// docs/decisions/0004-gcc-12-or-later.md
inline constexpr int oldest_gcc = 12;

struct Compiler {
  bool is_clang = false;
  int major = 0;
};

/// Identifies a compiler by its predefined macros, which also works for wrappers and renamed compilers (`-dumpversion`
/// does not distinguish clang from GCC).
[[nodiscard]] Result<Compiler> ask_compiler(const std::string& name);

}  // namespace iosig::cli
