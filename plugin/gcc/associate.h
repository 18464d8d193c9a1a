// Which call a `#pragma sig` speaks about: the open in the statement, declaration or controlling expression that
// follows it immediately. Of the parser's trees it changes only locations, and its own markers (C++ undoes more: it
// caches folded expressions).
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// For PLUGIN_PRE_GENERICIZE: finds the calls of the pragmas that stand in `function`, and of those before variables
/// and members that it initialises; records them in their sites, and warns where there is none, or more than one.
void associate_sites(tree function);

/// When the unit's functions are known: warns about pragmas outside of functions that no open followed, and about those
/// in code that GCC does not compile.
void report_unused_sites();

}  // namespace iosig::gcc
