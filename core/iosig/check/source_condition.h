// The expression of an #if or #elif.
#pragma once

#include <span>

#include "iosig/check/source_lexer.h"

namespace iosig {

/// `expression`: behind the directive's name, with `defined` answered and macros expanded. Words that are left are 0,
/// as the standards say, even with arguments (a macro of a header that was not read); in C++ `true` is 1. An
/// expression that no compiler accepts is false, as is one with absurdly many parentheses.
[[nodiscard]] bool condition_holds(std::span<const SourceToken> expression, bool is_cxx);

}  // namespace iosig
