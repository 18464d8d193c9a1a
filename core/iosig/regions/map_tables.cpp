#include "iosig/regions/map_tables.h"

#include <algorithm>
#include <limits>
#include <map>

#include "iosig/base/text.h"
#include "iosig/regions/region_rows.h"

namespace iosig::regions {
namespace {

constexpr std::uint64_t application_id = 0x494f5352;  // "IOSR"
constexpr std::uint64_t version = 1;
constexpr unsigned window_shift = 32;
constexpr std::uint64_t max_window_id = 1ULL << 31;  // region ids stay below 2^63

/// As SQLite keeps them: a file with other tables, triggers or views is not read.
constexpr const char* table_texts[] = {
    "CREATE TABLE placement (id INTEGER PRIMARY KEY, application BLOB, processes INTEGER, file BLOB, classes BLOB, "
    "windows INTEGER, checksum INTEGER)",
    "CREATE TABLE region (id INTEGER PRIMARY KEY, offset INTEGER, length INTEGER, stripes BLOB, target BLOB, "
    "checksum INTEGER)",
    "CREATE TABLE span (id INTEGER PRIMARY KEY, placement INTEGER, number INTEGER, regions INTEGER, checksum INTEGER)",
    "CREATE TABLE summary (id INTEGER PRIMARY KEY, placements INTEGER, checksum INTEGER)"};

tl::unexpected<Error> damaged(const Database& database, std::string_view place, std::string_view what) {
  return fail(ErrorKind::bad_input, "'{}': {}: {}; delete the region map and make it again with 'iosig plan --map'",
              printable(database.path()), place, what);
}

/// Prepares `sql` and calls `take` for each row.
template <class Take>
Result<void> for_each_row(const Database& database, std::string_view sql, Take take) {
  auto rows = database.prepare(sql);
  if (!rows) return pass_on(rows.error());
  for (;;) {
    const auto has_row = rows->step();
    if (!has_row) return pass_on(has_row.error());
    if (!*has_row) return {};
    if (auto taken = take(*rows); !taken) return taken;
  }
}

std::uint32_t checksum_of(const StoredPlacement& placement, std::size_t windows) {
  MappedPlacement plain{placement.key, placement.classes, {}};
  plain.windows.resize(windows);
  return placement_checksum(plain);
}

/// Windows that a placement row announces. More than any plan has, and few enough to allocate.
constexpr std::uint64_t max_windows = 1U << 20;

struct Announced {
  std::vector<StoredPlacement> placements;
  std::vector<std::uint32_t> checksums;
};

Result<Announced> read_placements(const Database& database) {
  Announced read;
  const auto take = [&](const Statement& row) -> Result<void> {
    StoredPlacement placement{row.number(0), {}, {}, {}};
    placement.key = {std::string(row.text(1)), static_cast<std::uint32_t>(row.number(2)), std::string(row.text(3))};
    const auto classes = parse_classes(row.text(4));
    const std::uint64_t windows = row.number(5);
    if (classes) placement.classes = *classes;
    if (!classes || windows > max_windows || row.number(6) != checksum_of(placement, windows))
      return damaged(database, fmt::format("placement {}", placement.id), "its checksum is wrong");
    placement.windows.resize(windows);
    read.checksums.push_back(static_cast<std::uint32_t>(row.number(6)));
    read.placements.push_back(std::move(placement));
    return {};
  };
  const auto done = for_each_row(
      database, "SELECT id, application, processes, file, classes, windows, checksum FROM placement ORDER BY id", take);
  if (!done) return pass_on(done.error());
  return read;
}

Result<void> check_summary(const Database& database, const Announced& read) {
  std::size_t rows = 0;
  bool is_right = false;
  auto done = for_each_row(database, "SELECT placements, checksum FROM summary", [&](const Statement& row) {
    ++rows;
    is_right = row.number(0) == read.placements.size() && row.number(1) == list_checksum(read.checksums);
    return Result<void>{};
  });
  if (!done) return done;
  if (rows == 1 && is_right) return {};
  return damaged(database, "summary",
                 fmt::format("does not agree with the {} placements there", read.placements.size()));
}

/// Puts each window's row into its placement.
Result<void> read_windows(const Database& database, std::vector<StoredPlacement>& placements) {
  std::map<std::uint64_t, StoredPlacement*> by_id;
  for (StoredPlacement& each : placements) by_id[each.id] = &each;
  const auto take = [&](const Statement& row) -> Result<void> {
    const std::uint64_t id = row.number(0), number = row.number(2);
    const auto owner = by_id.find(row.number(1));
    const auto place = fmt::format("row {} of the windows", id);
    if (owner == by_id.end()) return damaged(database, place, "belongs to no placement");
    auto& windows = owner->second->windows;
    if (id == 0 || id >= max_window_id || number >= windows.size() || windows[number].id != 0)
      return damaged(database, place,
                     fmt::format("{} has no window {}, or two of them", about(owner->second->key), number));
    windows[number] = {id, static_cast<std::uint32_t>(number), row.number(3),
                       static_cast<std::uint32_t>(row.number(4))};
    return {};
  };
  if (auto done = for_each_row(database, "SELECT id, placement, number, regions, checksum FROM span ORDER BY id", take);
      !done)
    return done;
  for (const StoredPlacement& each : placements)
    for (std::size_t number = 0; number < each.windows.size(); ++number)
      if (each.windows[number].id == 0)
        return damaged(database, about(each.key), fmt::format("window {} is missing", number));
  return {};
}

}  // namespace

Result<void> make_tables(const Database& database) {
  for (const char* const text : table_texts)
    if (auto made = database.run(text); !made) return made;
  return database.run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, version));
}

Result<bool> is_empty(const Database& database) {
  const auto tables = database.number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return pass_on(tables.error());
  return *tables == 0;
}

Result<void> check_version(const Database& database) {
  const auto empty = is_empty(database);
  if (!empty) return pass_on(empty.error());
  if (*empty)
    return fail(ErrorKind::bad_input,
                "'{}': holds no region map; expected a file that 'iosig plan --map' wrote to its end",
                printable(database.path()));
  const auto id = database.number("PRAGMA application_id"), found = database.number("PRAGMA user_version");
  if (!id) return pass_on(id.error());
  if (!found) return pass_on(found.error());
  if (*id != application_id)
    return fail(ErrorKind::bad_input,
                "'{}': is a database of another program (id {:#x}); expected a region map ({:#x})",
                printable(database.path()), *id, application_id);
  if (*found != version)
    return fail(ErrorKind::bad_input, "'{}': is a region map of version {}; this iosig reads version {}",
                printable(database.path()), *found, version);
  std::size_t tables = 0;
  auto done =
      for_each_row(database, "SELECT sql FROM sqlite_schema ORDER BY name", [&](const Statement& row) -> Result<void> {
        if (tables < std::size(table_texts) && row.text(0) == table_texts[tables++]) return {};
        return damaged(database, "tables", "expected those of a region map, found others");
      });
  if (!done) return done;
  if (tables != std::size(table_texts)) return damaged(database, "tables", "one is missing");
  return {};
}

Result<std::vector<StoredPlacement>> read_index(const Database& database) {
  auto read = read_placements(database);
  if (!read) return pass_on(read.error());
  if (const auto checked = check_summary(database, *read); !checked) return pass_on(checked.error());
  if (const auto windows = read_windows(database, read->placements); !windows) return pass_on(windows.error());
  return std::move(read->placements);
}

Result<MappedWindow> read_regions(const Database& database, const StoredPlacement& placement,
                                  const StoredWindow& window) {
  const std::string place = fmt::format("{}: window {}", about(placement.key), window.number);
  MappedWindow regions;
  std::vector<std::uint32_t> checksums;
  auto rows = database.prepare(
      "SELECT id, offset, length, stripes, target, checksum FROM region WHERE id BETWEEN ? AND ? ORDER BY id");
  if (!rows) return pass_on(rows.error());
  const std::uint64_t first = window.id << window_shift;
  rows->bind(1, first).bind(2, first | std::numeric_limits<std::uint32_t>::max());
  for (;;) {
    const auto has_row = rows->step();
    if (!has_row) return pass_on(has_row.error());
    if (!*has_row) break;
    MappedRegion region{static_cast<std::uint32_t>(rows->number(0) - first),
                        rows->number(1),
                        rows->number(2),
                        {},
                        std::string(rows->text(4))};
    const auto stripes = unpacked_stripes(rows->text(3));
    if (stripes) region.stripe_bytes = *stripes;
    const std::uint32_t checksum = region_checksum(placement.key, window.number, region);
    if (!stripes || rows->number(5) != checksum)
      return damaged(database, place, fmt::format("the checksum of region {} is wrong", region.number));
    checksums.push_back(checksum);
    regions.push_back(std::move(region));
  }
  if (regions.size() != window.regions || window_checksum(placement.key, window.number, checksums) != window.checksum)
    return damaged(
        database, place,
        fmt::format("has {} regions that do not agree with its checksum; expected {}", regions.size(), window.regions));
  if (const std::string fault = fault_of(regions, placement.classes.size()); !fault.empty())
    return damaged(database, place, fault);
  return regions;
}

Result<void> delete_window(const Database& database, const StoredWindow& window) {
  auto regions = database.prepare("DELETE FROM region WHERE id BETWEEN ? AND ?");
  if (!regions) return pass_on(regions.error());
  const std::uint64_t first = window.id << window_shift;
  regions->bind(1, first).bind(2, first | std::numeric_limits<std::uint32_t>::max());
  if (auto done = regions->run(); !done) return done;
  auto row = database.prepare("DELETE FROM span WHERE id = ?");
  if (!row) return pass_on(row.error());
  return row->bind(1, window.id).run();
}

Result<void> delete_placement(const Database& database, const StoredPlacement& placement) {
  for (const StoredWindow& window : placement.windows)
    if (auto done = delete_window(database, window); !done) return done;
  auto row = database.prepare("DELETE FROM placement WHERE id = ?");
  if (!row) return pass_on(row.error());
  return row->bind(1, placement.id).run();
}

Result<void> insert_window(const Database& database, const StoredPlacement& placement, StoredWindow& window,
                           const MappedWindow& regions) {
  auto rows = database.prepare("INSERT INTO region VALUES (?, ?, ?, ?, ?, ?)");
  if (!rows) return pass_on(rows.error());
  std::vector<std::uint32_t> checksums;
  for (const MappedRegion& each : regions) {
    checksums.push_back(region_checksum(placement.key, window.number, each));
    rows->bind(1, (window.id << window_shift) | each.number).bind(2, each.offset_bytes).bind(3, each.length_bytes);
    rows->bind_bytes(4, packed_stripes(each.stripe_bytes))
        .bind_bytes(5, each.target)
        .bind(6, std::uint64_t{checksums.back()});
    if (auto done = rows->run(); !done) return done;
  }
  window.regions = regions.size();
  window.checksum = window_checksum(placement.key, window.number, checksums);
  auto row = database.prepare("INSERT INTO span VALUES (?, ?, ?, ?, ?)");
  if (!row) return pass_on(row.error());
  row->bind(1, window.id).bind(2, placement.id).bind(3, std::uint64_t{window.number});
  return row->bind(4, window.regions).bind(5, std::uint64_t{window.checksum}).run();
}

Result<void> insert_placement(const Database& database, const StoredPlacement& placement) {
  auto row = database.prepare("INSERT OR REPLACE INTO placement VALUES (?, ?, ?, ?, ?, ?, ?)");
  if (!row) return pass_on(row.error());
  const std::size_t windows = placement.windows.size();
  row->bind(1, placement.id).bind_bytes(2, placement.key.application).bind(3, std::uint64_t{placement.key.processes});
  row->bind_bytes(4, placement.key.file).bind_bytes(5, classes_text(placement.classes)).bind(6, std::uint64_t{windows});
  return row->bind(7, std::uint64_t{checksum_of(placement, windows)}).run();
}

Result<void> write_summary(const Database& database, const std::vector<StoredPlacement>& placements) {
  std::vector<std::uint32_t> checksums;
  for (const StoredPlacement& each : placements) checksums.push_back(checksum_of(each, each.windows.size()));
  auto row = database.prepare("INSERT OR REPLACE INTO summary VALUES (1, ?, ?)");
  if (!row) return pass_on(row.error());
  return row->bind(1, std::uint64_t{placements.size()}).bind(2, std::uint64_t{list_checksum(checksums)}).run();
}

}  // namespace iosig::regions
