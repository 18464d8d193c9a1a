// The behaviours that call the next definition and do nothing else: calls that are intercepted to be traced.
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"

namespace iosig::preload::hook {

#include "passing.inc"

}  // namespace iosig::preload::hook
