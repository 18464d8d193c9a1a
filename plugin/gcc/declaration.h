// Reads from the source text what GCC's trees do not record: which declarators belong to one declaration, and which
// declaration follows a pragma.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// Whether `to` names a variable in the declaration that contains `from` or directly follows it. If the source text is
/// unavailable (a pipe, another machine): whether `to` is on the same line or the next one.
[[nodiscard]] bool in_one_declaration(location_t from, location_t to);

}  // namespace iosig::gcc
