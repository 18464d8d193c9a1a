// Which call a `#pragma sig` speaks about: the open in the statement, declaration or controlling expression that
// follows it immediately. Reads the parser's trees and changes nothing in them (C++ would undo it: it caches folded
// expressions).
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// For PLUGIN_PRE_GENERICIZE: records the call's location in the site of every marker in `function`'s body; warns
/// where there is no such call, or more than one.
void associate_sites(tree function);

}  // namespace iosig::gcc
