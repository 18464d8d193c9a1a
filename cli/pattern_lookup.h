// Output of `iosig pattern lookup FILE OFFSET LENGTH`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"
#include "iosig/model/pattern.h"

namespace iosig::cli {

inline constexpr const char* pattern_lookup_schema = "iosig.pattern_lookup/1";

/// Prints the pieces of the range [offset, offset + length), one per line: "logical length id physical" or "logical
/// length hole". `offset` and `length` must not be negative. `columns`: the pattern's column names, as from
/// parse_columns; if empty: logical, length, physical, id, or the first three. `source` names the input in messages.
/// Returns the exit status.
int show_pieces(const Pattern& pattern, const std::vector<std::string>& columns, const std::string& source,
                std::int64_t offset, std::int64_t length, Console& console);

}  // namespace iosig::cli
