// The GIMPLE pass that puts code before the opens that have a signature.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// Runs on every function after its body is GIMPLE and before it has a control flow graph. The caller hands it to the
/// pass manager, which owns it.
[[nodiscard]] opt_pass* new_inject_pass();

}  // namespace iosig::gcc
