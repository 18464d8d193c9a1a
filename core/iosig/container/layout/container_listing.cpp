// Lists the contents of a container: droppings, quarantined files, and foreign names.

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/parallel.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/order/sequencer.h"

namespace iosig {
namespace {

/// `ids`: none is negative. Where most numbers up to the greatest are there, as usual, it takes linear time.
void sort_unique(std::vector<std::int64_t>& ids) {
  constexpr std::size_t min_dense = 1024, max_numbers_per_id = 16;
  const std::int64_t greatest = ids.empty() ? 0 : std::ranges::max(ids);
  if (ids.size() < min_dense || static_cast<std::size_t>(greatest) / max_numbers_per_id >= ids.size()) {
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return;
  }
  std::vector<bool> is_there(static_cast<std::size_t>(greatest) + 1);
  for (const std::int64_t id : ids) is_there[static_cast<std::size_t>(id)] = true;
  ids.clear();
  for (std::int64_t id = 0; id <= greatest; ++id)
    if (is_there[static_cast<std::size_t>(id)]) ids.push_back(id);
}

/// Returns the number in a subdirectory's name; no value for other names.
std::optional<std::uint32_t> subdirectory_of(const std::string& name, std::uint32_t subdirectories) {
  std::uint32_t n = 0;
  const auto [end, failure] =
      std::from_chars(name.data() + std::min<std::size_t>(1, name.size()), name.data() + name.size(), n);
  const bool is_one = failure == std::errc() && end == name.data() + name.size() && n < subdirectories;
  return is_one && name == subdirectory_name(n) ? std::optional(n) : std::nullopt;
}

void append(ContainerDirectory::Listing from, ContainerDirectory::Listing& to) {
  const auto move_all = [](auto& part, auto& whole) { std::ranges::move(part, std::back_inserter(whole)); };
  move_all(from.data, to.data);
  move_all(from.index, to.index);
  move_all(from.tail, to.tail);
  move_all(from.foreign_names, to.foreign_names);
  move_all(from.unreadable, to.unreadable);
  move_all(from.quarantined, to.quarantined);
  to.misses_indices |= from.misses_indices;
}

class Lister {
 public:
  explicit Lister(const ContainerDirectory& directory) : directory_(directory) {}

  /// Lists the container itself, or a target, which holds only data droppings. Subdirectories are created on demand, so
  /// the listing tells which ones exist. finish() lists them.
  void visit(const Fd& place, const std::string& shown, bool is_target) {
    if (!place) return;
    const auto names = names_in(place);
    if (!names) return cannot_list(names.error(), is_target, listing_);
    for (const std::string& name : *names) {
      if (const auto n = subdirectory_of(name, directory_.manifest().subdirectories))
        subdirectories_.push_back({&place, &shown, *n, is_target});
      else if (name.starts_with(quarantine_prefix))
        visit_quarantine(place, fmt::format("{}/{}", shown, name), name);
      else if (!is_target && name.starts_with(closed_writers_prefix))
        listing_.closed_writers.push_back(name);
      else if (!is_known(name, is_target))
        listing_.foreign_names.push_back(name);
    }
  }

  void add_missing_target(const std::string& target) {
    listing_.unreadable.push_back({ErrorKind::system, fmt::format("the target '{}' is not there", printable(target))});
  }

  /// Lists the subdirectories; side by side if the first one has many names.
  ContainerDirectory::Listing finish() {
    constexpr std::size_t many_names = 512;  // with fewer, starting threads costs more than it saves
    std::vector<ContainerDirectory::Listing> found(subdirectories_.size());
    if (!found.empty()) found.front() = list(subdirectories_.front());
    const bool has_many = !found.empty() && found.front().data.size() + found.front().index.size() >= many_names;
    for_each_in_parallel(found.empty() ? 0 : found.size() - 1, has_many ? 0 : 1,
                         [&](std::size_t n) { found[n + 1] = list(subdirectories_[n + 1]); });
    for (ContainerDirectory::Listing& each : found) append(std::move(each), listing_);
    for (auto* ids : {&listing_.data, &listing_.index, &listing_.tail}) sort_unique(*ids);
    return std::move(listing_);
  }

 private:
  struct Subdirectory {
    const Fd* place;
    const std::string* shown;
    std::uint32_t number;
    bool is_target;
  };

  static bool is_known(const std::string& name, bool is_target) {
    if (name == container_manifest_name) return true;
    return !is_target && (is_sequencer(name) || name.starts_with(order_draft_prefix) || name == index_snapshot_name ||
                          name == index_snapshot_draft || name == manifest_copy_name || name == manifest_copy_draft);
  }

  static void cannot_list(Error error, bool is_target, ContainerDirectory::Listing& listing) {
    listing.unreadable.push_back(std::move(error));
    listing.misses_indices |= !is_target;
  }

  [[nodiscard]] ContainerDirectory::Listing list(const Subdirectory& it) const {
    ContainerDirectory::Listing listing;
    const std::string name = subdirectory_name(it.number), shown = fmt::format("{}/{}", *it.shown, name);
    const Fd directory = open_file_at(it.place->get(), name.c_str(), directory_flags);
    if (!directory && errno != ENOENT) cannot_list(system_failure("list", shown).value(), it.is_target, listing);
    if (!directory) return listing;
    const auto names = names_in(directory);
    if (!names) {
      cannot_list(names.error(), it.is_target, listing);
      return listing;
    }
    for (const std::string& found : *names) {
      // Deleted, but an NFS client keeps it while one of its processes has it open.
      if (found.starts_with(".nfs")) continue;
      const auto dropping = parse_dropping_name(found);
      if (found.starts_with(quarantine_prefix))
        note_quarantined(directory, found, found.substr(quarantine_prefix.size()), shown, listing);
      else if (!dropping ||
               dropping->id % static_cast<std::int64_t>(directory_.manifest().subdirectories) != it.number ||
               (dropping->kind != Dropping::data && it.is_target))
        listing.foreign_names.push_back(fmt::format("{}/{}", name, found));
      else
        (dropping->kind == Dropping::data    ? listing.data
         : dropping->kind == Dropping::index ? listing.index
                                             : listing.tail)
            .push_back(dropping->id);
    }
    return listing;
  }

  void visit_quarantine(const Fd& place, const std::string& shown, const std::string& name) {
    listing_.has_quarantine = true;
    const Fd directory = open_file_at(place.get(), name.c_str(), directory_flags);
    const auto names = directory ? names_in(directory) : Result<std::vector<std::string>>{};
    if (!names) return;
    for (const std::string& found : *names) note_quarantined(directory, found, found, shown, listing_);
  }

  /// Records the file `found` if it is not empty and `dropping` is the name of a data dropping.
  static void note_quarantined(const Fd& directory, const std::string& found, std::string_view dropping,
                               const std::string& shown, ContainerDirectory::Listing& listing) {
    const auto parsed = parse_dropping_name(dropping);
    struct stat status {};
    if (parsed && parsed->kind == Dropping::data &&
        ::fstatat(directory.get(), found.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size > 0)
      listing.quarantined.push_back({printable(shown + "/" + found), parsed->id, status.st_size});
  }

  const ContainerDirectory& directory_;
  ContainerDirectory::Listing listing_;
  std::vector<Subdirectory> subdirectories_;
};

}  // namespace

ContainerDirectory::Listing ContainerDirectory::list() const {
  Lister lister(*this);
  lister.visit(directory_, path_, false);
  for (std::size_t n = 0; n < targets_.size(); ++n) {
    if (!targets_[n]) lister.add_missing_target(manifest_.targets[n]);
    lister.visit(targets_[n], manifest_.targets[n], true);
  }
  return lister.finish();
}

}  // namespace iosig
