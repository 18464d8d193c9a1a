// A pattern as people read it: loops, strides, counts. Not meant to be read back; the JSON and the binary form are.
#pragma once

#include <span>
#include <string>

#include "iosig/model/pattern.h"

namespace iosig {

/// A line for each loop and each vector in it, and the first of literals and exceptions:
///
///     for i < 1000
///       for j < 16
///         logical 524288 i + 4096 j, length 1024
///
/// `names`: of the columns; may be empty. Ends without a line end.
[[nodiscard]] std::string pattern_text(const Pattern& pattern, std::span<const std::string> names = {});

}  // namespace iosig
