// A user's own opening function, as `#pragma sigopen` and the compiler's -fplugin-arg-iosig-callee declare it:
//
//   NAME(PATH)  NAME(PATH, MODE)  or  NAME:PATH  NAME:PATH:MODE        NAME := word { "::" word }
//
// For example `io::open_output(1, 2)`. PATH and MODE are argument numbers, counted from 1 as in GCC's attributes:
// `this` is the first argument of a member function.
#pragma once

#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/format/signature_text.h"
#include "iosig/model/opener.h"

namespace iosig {

struct ParsedOpener {
  Opener opener;                        ///< `unknown`: the meaning of its mode follows from the argument's type
  std::vector<Diagnostic> diagnostics;  ///< empty, or the first mistake
  [[nodiscard]] bool ok() const { return diagnostics.empty(); }
};

/// Parses both spellings; allows blanks between the parts.
[[nodiscard]] ParsedOpener parse_sigopen(std::string_view text);

/// parse_sigopen for callers that want a value; the message underlines the mistake in `text`. Fails with `usage`.
[[nodiscard]] Result<Opener> parse_callee(std::string_view text, std::string_view source);

}  // namespace iosig
