// Reads from the source text what GCC's trees do not record: which declarators belong to one declaration, which
// declaration follows a pragma, and statements without a tree.
#pragma once

#include "gcc.h"

namespace iosig::gcc {

/// Whether `to` names a variable in the declaration that contains `from` or directly follows it. If the source text is
/// unavailable (a pipe, another machine): whether `to` is on the same line or the next one.
[[nodiscard]] bool in_one_declaration(location_t from, location_t to);

/// Whether a statement or declaration, such as `;`, `{ }` or a typedef, ends between the pragma and `to`, the beginning
/// of the first tree after the pragma. If the source text is unavailable or has conditions of the preprocessor: false.
[[nodiscard]] bool is_statement_between(location_t pragma, location_t to);

}  // namespace iosig::gcc
