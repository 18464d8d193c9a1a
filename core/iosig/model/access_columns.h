// The columns of vectors that are accesses: their names and positions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Offsets and lengths are in bytes, never negative, and end at most at 2^63 - 1.
inline constexpr std::string_view logical_column = "logical", length_column = "length", physical_column = "physical",
                                  id_column = "id", sequence_name = "sequence";

/// Returns the name of a kind, "" for `any`; and the kind of a name, `any` for an unknown name.
[[nodiscard]] std::string_view name_of(Column kind);
[[nodiscard]] Column column_of(std::string_view name);

/// Returns the names of the pattern's columns: empty if none is known, "" for unknown ones.
[[nodiscard]] std::vector<std::string> column_names(const Pattern& pattern);
/// Sets the names of the columns. `names`: empty, or one per column.
void set_column_names(Pattern& pattern, std::span<const std::string> names);

/// Returns `given` if not empty, otherwise column_names(). Fails with `usage` if both exist and differ, or if the
/// number of names differs from that of the columns.
[[nodiscard]] Result<std::vector<std::string>> names_in(const Pattern& pattern, std::span<const std::string> given);

/// The position of each column; -1: missing.
struct AccessColumns {
  int logical = 0, length = 1, physical = 2;
  int id = 3;
};

/// Returns the position of each column among `names`.
[[nodiscard]] AccessColumns access_columns(std::span<const std::string> names);

/// Returns the columns for a lookup in vectors of `columns` columns. Without names: logical, length, physical and, if
/// there is a fourth, id. Fails with `usage` if the number of names differs from `columns`, or if one of the first
/// three is missing.
[[nodiscard]] Result<AccessColumns> lookup_columns(std::span<const std::string> names, std::uint32_t columns);

}  // namespace iosig
