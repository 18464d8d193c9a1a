// What `iosig pattern lookup FILE OFFSET LENGTH` does with the description it has read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console.h"
#include "iosig/model/pattern.h"

namespace iosig::cli {

inline constexpr const char* pattern_lookup_schema = "iosig.pattern_lookup/1";

/// Prints the pieces of `length` bytes from `offset` on, neither of them negative: a line each, "logical length id
/// physical" or "logical length hole". `columns`: the pattern's names, by parse_columns; none: logical, length,
/// physical, id, or the first three. `source`: for messages. Returns the exit status.
int show_pieces(const Pattern& pattern, const std::vector<std::string>& columns, const std::string& source,
                std::int64_t offset, std::int64_t length, Console& console);

}  // namespace iosig::cli
