// The columns that vectors have which are accesses: their names, and where they stand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Offsets and lengths are bytes, never negative, and end at most at 2^63 - 1.
inline constexpr std::string_view logical_column = "logical", length_column = "length", physical_column = "physical",
                                  id_column = "id", sequence_name = "sequence";

/// The name of a kind, "" for `any`; and the kind of a name, `any` for one that is none of these.
[[nodiscard]] std::string_view name_of(Column kind);
[[nodiscard]] Column column_of(std::string_view name);

/// The names of the pattern's columns; none when none is known, "" for those that are not.
[[nodiscard]] std::vector<std::string> column_names(const Pattern& pattern);
/// `names`: none, or one for each column.
void set_column_names(Pattern& pattern, std::span<const std::string> names);

/// `given`, if there are any, else column_names(). Fails as `usage` where both are there and differ, and for as many as
/// there are no columns.
[[nodiscard]] Result<std::vector<std::string>> names_in(const Pattern& pattern, std::span<const std::string> given);

/// Which column is which; -1: there is none.
struct AccessColumns {
  int logical = 0, length = 1, physical = 2;
  int id = 3;
};

/// Where each stands among `names`.
[[nodiscard]] AccessColumns access_columns(std::span<const std::string> names);

/// For a lookup in vectors of `columns` columns. No names: logical, length, physical and, if there is a fourth, id.
/// Fails as `usage` for as many names as there are no columns, and where one of the first three is missing.
[[nodiscard]] Result<AccessColumns> lookup_columns(std::span<const std::string> names, std::uint32_t columns);

}  // namespace iosig
