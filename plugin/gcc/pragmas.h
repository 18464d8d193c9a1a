// `#pragma sig` and `#pragma sigdef`: from tokens to sites, with the core's diagnostics at the compiler's carets.
#pragma once

namespace iosig::gcc {

/// For PLUGIN_PRAGMAS: tells the preprocessor the two pragmas. Macros in them are expanded.
void register_pragmas();

}  // namespace iosig::gcc
