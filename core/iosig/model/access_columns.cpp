#include "iosig/model/access_columns.h"

#include <algorithm>

namespace iosig {

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
