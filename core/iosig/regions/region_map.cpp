#include "iosig/regions/region_map.h"

#include <algorithm>
#include <map>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/regions/map_tables.h"
#include "iosig/regions/region_rows.h"

namespace iosig::regions {
namespace {

/// Opens an existing map for reading and begins a transaction, which ends when the database is closed.
Result<Database> opened_to_read(const std::string& path) {
  auto database = Database::open(path, IfMissing::fail);
  if (!database) return database;
  if (const auto begun = database->run("BEGIN"); !begun) return pass_on(begun.error());
  if (const auto checked = check_version(*database); !checked) return pass_on(checked.error());
  return database;
}

Result<std::vector<MappedPlacement>> read_placements(const Database& database,
                                                     const std::vector<StoredPlacement>& index) {
  std::vector<MappedPlacement> placements;
  for (const StoredPlacement& stored : index) {
    MappedPlacement& placement = placements.emplace_back(MappedPlacement{stored.key, stored.classes, {}});
    for (const StoredWindow& window : stored.windows) {
      auto regions = read_regions(database, stored, window);
      if (!regions) return pass_on(regions.error());
      placement.windows.push_back(*std::move(regions));
    }
  }
  std::ranges::sort(placements, {}, &MappedPlacement::key);
  return placements;
}

tl::unexpected<Error> no_placement(const std::string& path, const MapKey& key) {
  return fail(ErrorKind::infeasible, "'{}': has no placement for {}", printable(path), about(key));
}

/// The placements of a map that is open for writing. Each change ends with finish(); without it nothing has changed.
class Writing {
 public:
  static Result<Writing> begin(const std::string& path, IfMissing if_missing) {
    auto database = Database::open(path, if_missing);
    if (!database) return pass_on(database.error());
    Writing writing(std::move(*database));
    if (const auto ready = writing.prepare(); !ready) return pass_on(ready.error());
    return writing;
  }

  [[nodiscard]] const Database& database() const { return database_; }
  [[nodiscard]] const std::vector<StoredPlacement>& placements() const { return placements_; }
  /// The pointer is valid until the next add().
  [[nodiscard]] StoredPlacement* find(const MapKey& key) {
    const auto known = place_of_.find(key);
    return known == place_of_.end() ? nullptr : &placements_[known->second];
  }
  [[nodiscard]] std::uint64_t new_window_id() { return ++last_window_id_; }
  [[nodiscard]] StoredPlacement& add(const MapKey& key) {
    place_of_[key] = placements_.size();
    return placements_.emplace_back(StoredPlacement{++last_id_, key, {}, {}});
  }

  Result<void> finish() {
    if (auto written = write_summary(database_, placements_); !written) return written;
    return database_.run("COMMIT");
  }

 private:
  explicit Writing(Database database) : database_(std::move(database)) {}

  Result<void> prepare() {
    if (auto begun = database_.run("BEGIN IMMEDIATE"); !begun) return begun;
    const auto empty = is_empty(database_);
    if (!empty) return pass_on(empty.error());
    if (*empty) return make_tables(database_);
    if (auto checked = check_version(database_); !checked) return checked;
    auto read = read_index(database_);
    if (!read) return pass_on(read.error());
    placements_ = *std::move(read);
    for (const StoredPlacement& placement : placements_) {
      place_of_[placement.key] = static_cast<std::size_t>(&placement - placements_.data());
      last_id_ = std::max(last_id_, placement.id);
      for (const StoredWindow& window : placement.windows) {
        last_window_id_ = std::max(last_window_id_, window.id);
        if (const auto regions = read_regions(database_, placement, window); !regions) return pass_on(regions.error());
      }
    }
    return check_pages();
  }

  /// What the rows do not show: pages that are used twice or by nothing.
  Result<void> check_pages() {
    auto check = database_.prepare("PRAGMA quick_check(1)");
    if (!check) return pass_on(check.error());
    const auto has_row = check->step();
    if (!has_row) return pass_on(has_row.error());
    if (*has_row && check->text(0) == "ok") return {};
    return fail(ErrorKind::bad_input,
                "'{}': the region map is damaged: {}; delete it and make it again with 'iosig plan --map'",
                printable(database_.path()), printable(check->text(0)));
  }

  Database database_;
  std::vector<StoredPlacement> placements_;
  std::map<MapKey, std::size_t> place_of_;  ///< in placements_
  std::uint64_t last_id_ = 0, last_window_id_ = 0;
};

Result<void> check_window(const std::string& path, std::size_t window, const MappedWindow& regions,
                          std::size_t classes) {
  const std::string fault = fault_of(regions, classes);
  if (fault.empty()) return {};
  return fail(ErrorKind::bad_input, "'{}': window {}: {}", printable(path), window, fault);
}

Result<void> check_placement(const std::string& path, const MappedPlacement& placement) {
  if (placement.windows.empty())
    return fail(ErrorKind::bad_input, "'{}': {}: has no windows; expected at least one", printable(path),
                about(placement.key));
  for (std::size_t n = 0; n < placement.windows.size(); ++n)
    if (auto checked = check_window(path, n, placement.windows[n], placement.classes.size()); !checked) return checked;
  return {};
}

Result<void> check_placements(const std::string& path, std::span<const MappedPlacement> placements) {
  for (const MappedPlacement& placement : placements)
    if (auto checked = check_placement(path, placement); !checked) return checked;
  return {};
}

Result<void> store(Writing& writing, const MappedPlacement& placement) {
  StoredPlacement* stored = writing.find(placement.key);
  if (stored != nullptr)
    if (auto deleted = delete_placement(writing.database(), *stored); !deleted) return deleted;
  if (stored == nullptr) stored = &writing.add(placement.key);
  stored->classes = placement.classes;
  stored->windows.clear();
  for (const MappedWindow& regions : placement.windows) {
    StoredWindow& window = stored->windows.emplace_back(
        StoredWindow{writing.new_window_id(), static_cast<std::uint32_t>(stored->windows.size())});
    if (auto done = insert_window(writing.database(), *stored, window, regions); !done) return done;
  }
  return insert_placement(writing.database(), *stored);
}

Result<void> store_all(Writing& writing, std::span<const MappedPlacement> placements) {
  for (const MappedPlacement& placement : placements)
    if (auto stored = store(writing, placement); !stored) return stored;
  return writing.finish();
}

}  // namespace

Result<std::vector<MappedPlacement>> read_region_map(const std::string& path) {
  const auto database = opened_to_read(path);
  if (!database) return pass_on(database.error());
  const auto index = read_index(*database);
  if (!index) return pass_on(index.error());
  return read_placements(*database, *index);
}

Result<MappedWindow> read_window(const std::string& path, const MapKey& key, std::uint32_t window) {
  const auto database = opened_to_read(path);
  if (!database) return pass_on(database.error());
  const auto index = read_index(*database);
  if (!index) return pass_on(index.error());
  const auto stored = std::ranges::find(*index, key, &StoredPlacement::key);
  if (stored == index->end()) return no_placement(path, key);
  if (window >= stored->windows.size())
    return fail(ErrorKind::infeasible, "'{}': {}: has no window {}; the last is {}", printable(path), about(key),
                window, stored->windows.size() - 1);
  return read_regions(*database, *stored, stored->windows[window]);
}

Result<void> store_placements(const std::string& path, std::span<const MappedPlacement> placements) {
  if (auto checked = check_placements(path, placements); !checked) return checked;
  auto writing = Writing::begin(path, IfMissing::create);
  if (!writing) return pass_on(writing.error());
  return store_all(*writing, placements);
}

Result<void> revise_placements(const std::string& path, const Revise& revise) {
  auto writing = Writing::begin(path, IfMissing::fail);
  if (!writing) return pass_on(writing.error());
  const auto stored = read_placements(writing->database(), writing->placements());
  if (!stored) return pass_on(stored.error());
  const auto revised = revise(*stored);
  if (!revised) return fail(revised.error().kind, "'{}': {}", printable(path), revised.error().message);
  if (auto checked = check_placements(path, *revised); !checked) return checked;
  return store_all(*writing, *revised);
}

Result<void> replace_window(const std::string& path, const MapKey& key, std::uint32_t window,
                            const MappedWindow& regions) {
  auto writing = Writing::begin(path, IfMissing::create);
  if (!writing) return pass_on(writing.error());
  StoredPlacement* const stored = writing->find(key);
  if (stored == nullptr) return no_placement(path, key);
  if (auto checked = check_window(path, window, regions, stored->classes.size()); !checked) return checked;
  auto& windows = stored->windows;
  if (window > windows.size())
    return fail(ErrorKind::infeasible, "'{}': {}: has no window {}; the next is {}", printable(path), about(key),
                window, windows.size());
  if (window == windows.size())
    windows.emplace_back();
  else if (auto deleted = delete_window(writing->database(), windows[window]); !deleted)
    return deleted;
  windows[window] = {writing->new_window_id(), window};
  if (auto done = insert_window(writing->database(), *stored, windows[window], regions); !done) return done;
  if (auto done = insert_placement(writing->database(), *stored); !done) return done;
  return writing->finish();
}

}  // namespace iosig::regions
