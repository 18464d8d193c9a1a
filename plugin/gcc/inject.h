// The GIMPLE pass that inserts code before the opens that have a signature.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// Runs on every function after gimplification and before the control flow graph is built. The caller passes it to the
/// pass manager, which owns it.
[[nodiscard]] opt_pass* new_inject_pass();

}  // namespace iosig::gcc
