// The functions that programs get: of a traced call (calls.txt, `trace=`) entry::NAME, which records it and calls the
// behaviour; of any other the behaviour, hook::NAME, itself. Calls that this library makes on behalf of the program,
// and which a trace is to show, go here.
#pragma once

#include "preload/hooks/hook.h"

namespace iosig::preload::entry {

#include "entries.inc"

}  // namespace iosig::preload::entry
