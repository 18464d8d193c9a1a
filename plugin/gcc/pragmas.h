// `#pragma sig`, `sigdef` and `sigopen`: from tokens to sites and openers, with the core's diagnostics at the
// compiler's carets.
#pragma once

namespace iosig::gcc {

/// For PLUGIN_PRAGMAS: tells the preprocessor the pragmas. Macros in them are expanded.
void register_pragmas();

}  // namespace iosig::gcc
