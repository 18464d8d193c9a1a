// What the compilers of this machine are.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// stdout of a command; its stderr goes to /dev/null. Fails as `system` if it cannot be started or its status is not 0.
[[nodiscard]] Result<std::string> output_of(const std::vector<std::string>& command);

/// docs/decisions/0004-gcc-12-or-later.md
inline constexpr int oldest_gcc = 12;

struct Compiler {
  bool is_clang = false;
  int major = 0;
};

/// What its predefined macros say, which holds for wrappers and renamed compilers too (`-dumpversion` does not tell
/// clang from GCC).
[[nodiscard]] Result<Compiler> ask_compiler(const std::string& name);

}  // namespace iosig::cli
