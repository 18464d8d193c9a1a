// The behaviours of the intercepted calls: a program that calls pread() gets hook::pread(). Declared from the rows of
// calls.txt and defined in calls_FAMILY.cpp. Three names for one call, in every source of this library:
//
//   hook::pread()   what programs get; of a traced call through entry::pread(), which records it (entry.h)
//   real().pread()  the next definition: libc's, or that of another library that is preloaded after this one (real.h)
//   ::pread()       the engine's, which goes to the system and concerns none of the program's files
//                   (engine/engine_calls.cpp)
//
// A behaviour without a row does not compile ("should have been declared inside 'iosig::preload::hook'"). A row without
// a behaviour does not link ("undefined symbol 'iosig_behaviour_of_NAME'").
#pragma once

#include "preload/hooks/libc_types.h"

namespace iosig::preload::hook {

#include "hooks.inc"

}  // namespace iosig::preload::hook
