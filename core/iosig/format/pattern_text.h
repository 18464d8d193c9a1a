// A pattern in human-readable form: loops, strides, counts. For parsing, use the JSON or the binary form.
#pragma once

#include <span>
#include <string>

#include "iosig/model/pattern.h"

namespace iosig {

/// Returns one line per loop and per vector in it, and the first of the literals and exceptions:
///
///     for i < 1000
///       for j < 16
///         logical 524288 i + 4096 j, length 1024
///
/// `names`: of the columns; may be empty. Does not end with a newline.
[[nodiscard]] std::string pattern_text(const Pattern& pattern, std::span<const std::string> names = {});

}  // namespace iosig
