// The tables of a region map in its database: made, checked, read and written row by row. Internal to regions/.
#pragma once

#include "iosig/regions/database.h"
#include "iosig/regions/region_map.h"

namespace iosig::regions {

struct StoredWindow {
  std::uint64_t id = 0;  ///< its regions have the ids `id` * 2^32 + their number
  std::uint32_t number = 0;
  std::uint64_t regions = 0;
  std::uint32_t checksum = 0;
};

struct StoredPlacement {
  std::uint64_t id = 0;
  MapKey key;
  std::vector<MappedClass> classes;
  std::vector<StoredWindow> windows;  ///< by number
};

/// Makes the tables of an empty database, inside the caller's transaction.
[[nodiscard]] Result<void> make_tables(const Database& database);
/// Returns whether the database has no tables at all.
[[nodiscard]] Result<bool> is_empty(const Database& database);
/// Fails with `bad_input` unless the database is a region map of the version that this iosig knows.
[[nodiscard]] Result<void> check_version(const Database& database);

/// Reads and verifies all placements and windows, but no region.
[[nodiscard]] Result<std::vector<StoredPlacement>> read_index(const Database& database);
/// Reads and verifies the regions of a window.
[[nodiscard]] Result<MappedWindow> read_regions(const Database& database, const StoredPlacement& placement,
                                                const StoredWindow& window);

[[nodiscard]] Result<void> delete_window(const Database& database, const StoredWindow& window);
[[nodiscard]] Result<void> delete_placement(const Database& database, const StoredPlacement& placement);
/// Writes the regions and the row of a window; sets `window`'s number of regions and checksum.
[[nodiscard]] Result<void> insert_window(const Database& database, const StoredPlacement& placement,
                                         StoredWindow& window, const MappedWindow& regions);
[[nodiscard]] Result<void> insert_placement(const Database& database, const StoredPlacement& placement);
/// Writes the row that says how many placements there are.
[[nodiscard]] Result<void> write_summary(const Database& database, const std::vector<StoredPlacement>& placements);

}  // namespace iosig::regions
