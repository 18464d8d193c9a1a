// Evaluates the expression of an #if or #elif.
#pragma once

#include <span>

#include "iosig/check/source_lexer.h"

namespace iosig {

/// `expression`: the tokens after the directive's name, with `defined` evaluated and macros expanded. Remaining words
/// are 0, as in the standards, even with arguments (a macro of a header that was not read); in C++ `true` is 1. An
/// expression that no compiler accepts is false, as is one with excessively many parentheses.
[[nodiscard]] bool condition_holds(std::span<const SourceToken> expression, bool is_cxx);

}  // namespace iosig
