// What the compiler's trees do not tell: which declarators belong to one declaration, and which declaration follows a
// pragma. The source's text does.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// Whether no declaration ends and no other one begins between two places: `to` names a variable in the declaration
/// that `from` is in, or stands directly before. Without the source's text (a pipe, another machine): whether `to` is
/// on the same line or the next one.
[[nodiscard]] bool in_one_declaration(location_t from, location_t to);

}  // namespace iosig::gcc
