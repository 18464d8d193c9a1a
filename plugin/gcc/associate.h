// Finds the call to which a `#pragma sig` applies: the open in the statement, declaration or controlling expression
// that immediately follows it. In the parser's trees it changes only locations and the plugin's own markers. In C++
// other changes could be undone, because GCC caches folded expressions.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// For PLUGIN_PRE_GENERICIZE: finds the calls of the pragmas in `function`, and of pragmas before variables and members
/// that it initialises. Records the calls in their sites, and warns if there is no call or more than one.
void associate_sites(tree function);

/// Called when all functions of the unit are known. Warns about pragmas outside of functions without an open after
/// them, and about pragmas in code that GCC does not compile.
void report_unused_sites();

}  // namespace iosig::gcc
