#include "iosig/model/access_columns.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace iosig {

namespace {

constexpr std::array<std::string_view, column_kinds> names_of_kinds = {
    "", logical_column, length_column, physical_column, id_column, sequence_name};

}  // namespace

std::string_view name_of(Column kind) { return names_of_kinds[static_cast<std::size_t>(kind)]; }

Column column_of(std::string_view name) {
  const auto found = std::ranges::find(names_of_kinds, name);
  return found == names_of_kinds.end() ? Column::any : static_cast<Column>(found - names_of_kinds.begin());
}

std::vector<std::string> column_names(const Pattern& pattern) {
  std::vector<std::string> names;
  for (std::uint32_t column = 0; column < pattern.columns; ++column) names.emplace_back(name_of(pattern.kinds[column]));
  return std::ranges::all_of(names, &std::string::empty) ? std::vector<std::string>{} : names;
}

void set_column_names(Pattern& pattern, std::span<const std::string> names) {
  pattern.kinds = {};
  for (std::size_t column = 0; column < names.size(); ++column) pattern.kinds[column] = column_of(names[column]);
}

Result<std::vector<std::string>> names_in(const Pattern& pattern, std::span<const std::string> given) {
  std::vector<std::string> known = column_names(pattern);
  if (given.empty()) return known;
  if (given.size() != pattern.columns)
    return fail(ErrorKind::usage, "{} names for {} columns", given.size(), pattern.columns);
  if (!known.empty() && !std::ranges::equal(known, given))
    return fail(ErrorKind::usage, "the description says {}", fmt::join(known, ","));
  return std::vector<std::string>(given.begin(), given.end());
}

AccessColumns access_columns(std::span<const std::string> names) {
  const auto place = [&](std::string_view name) {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
  };
  return {place(logical_column), place(length_column), place(physical_column), place(id_column)};
}

Result<AccessColumns> lookup_columns(std::span<const std::string> names, std::uint32_t columns) {
  if (names.empty()) return AccessColumns{.id = columns > 3 ? 3 : -1};
  if (names.size() != columns) return fail(ErrorKind::usage, "{} names for {} columns", names.size(), columns);
  const AccessColumns places = access_columns(names);
  if (places.logical < 0 || places.length < 0 || places.physical < 0)
    return fail(ErrorKind::usage, "a lookup needs logical, length and physical");
  return places;
}

}  // namespace iosig
