// Parses `#pragma sig`, `sigdef` and `sigopen` into sites and openers, and checks `#pragma sigio`; the core's
// diagnostics appear with the compiler's carets.
#pragma once

namespace iosig::gcc {

/// Registers the pragmas with the preprocessor, on PLUGIN_PRAGMAS. Macros in them are expanded.
void register_pragmas();

}  // namespace iosig::gcc
