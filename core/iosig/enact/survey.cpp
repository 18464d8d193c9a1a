#include "iosig/enact/survey.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/enact/agreement.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/home.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

bool holds_nothing(const Place& directory) {
  const Fd opened(
      ::openat(directory.directory.get(), directory.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return false;
  const auto names = names_in(opened);
  return names && names->empty();
}

/// Whether `place` is a link to the entry's data; it may be any file, or not exist.
Result<bool> leads_to_data(const Place& place, const JournalEntry& entry) {
  if (const auto target = link_target(place)) return *target == entry.destination;
  if (errno == EINVAL || errno == ENOENT) return false;
  return system_failure("look at", place.path());
}

/// A link that belongs to this user.
struct OwnLink {
  std::string target;
  bool has_other_names = false;  ///< hard links
};
std::optional<OwnLink> own_link(const Place& place) {
  auto target = link_target(place);
  struct stat status {};
  if (!target || ::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (status.st_uid != ::geteuid()) return {};
  return OwnLink{*std::move(target), status.st_nlink > 1};
}

/// Returns the target of this user's own link at `place`. An untrusted user may have planted a link to our data, or a
/// hard link to our link, to have the data brought there: no value for those.
std::optional<std::string> own_link_target(const Place& place) {
  auto link = own_link(place);
  return link && !link->has_other_names ? std::optional(std::move(link->target)) : std::nullopt;
}

Result<std::multimap<std::string, std::string>> links_in(Place place) {
  std::multimap<std::string, std::string> links;
  // A directory with search but without read permission hides its other names.
  if (::faccessat(place.directory.get(), ".", R_OK, AT_EACCESS) != 0 && errno == EACCES) return links;
  auto names = link_names_in(place.directory);
  if (!names) return pass_on(names.error());
  for (std::string& name : *names) {
    place.name = std::move(name);
    const auto link = own_link(place);
    if (!link) continue;
    if (link->has_other_names || place.name.ends_with(".aside"))  // sorted after all other names
      links.emplace(link->target, place.name);
    else
      links.emplace_hint(links.lower_bound(link->target), link->target, place.name);
  }
  return links;
}

/// Finds the entry's link: at its path, else under another name in the same directory, else under the name that a
/// killed run gave it. Fails if the directory cannot be read.
Result<std::optional<Place>> find_link(const JournalEntry& entry, KnownLinks& known) {
  const auto not_found = [&] { return check_home(entry).map([] { return std::optional<Place>(); }); };
  auto place = locate(AT_FDCWD, entry.path);
  if (!place) {
    struct stat status {};
    if (::lstat(entry.path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR))
      return pass_on(place.error());
    return not_found();
  }
  const auto stands = leads_to_data(*place, entry);
  if (!stands) return pass_on(stands.error());
  if (*stands) return *std::move(place);
  for (const bool again : {false, true}) {
    const auto directory = known.find(place->directory_path);
    if (again || directory == known.end()) {
      auto listed = beside(*place, {}).and_then(links_in);
      if (!listed) return pass_on(listed.error());
      known.insert_or_assign(place->directory_path, *std::move(listed));
    }
    const auto& links = known[place->directory_path];
    const auto link = links.lower_bound(entry.destination);  // the first of that target
    if (link == links.end() || link->first != entry.destination) break;
    place->name = link->second;
    if (own_link_target(*place) == entry.destination) return *std::move(place);
  }
  return not_found();
}

/// Returns why the data cannot be told to have no link: one with hard links, which this user or another may have made,
/// leads to them. Else "". find_link() has found no other link.
std::string doubtful_link(const JournalEntry& entry, const KnownLinks& known) {
  auto place = locate(AT_FDCWD, entry.path);
  const auto directory = place ? known.find(place->directory_path) : known.end();
  if (directory == known.end()) return "";
  const auto [begin, end] = directory->second.equal_range(entry.destination);
  for (auto each = begin; each != end; ++each) {
    place->name = each->second;
    const auto link = own_link(*place);
    if (link && link->target == entry.destination)
      return fmt::format("'{}' does, but it has other names, too (hard links), which another user may have made",
                         printable(place->path()));
  }
  return "";
}

/// Makes up an entry for a link into this user's own directory on some mount point.
std::optional<JournalEntry> entry_from_link(const Place& place, const std::string& target) {
  const auto parsed = parse_destination(target);
  const std::size_t slash = target.rfind('/');
  const std::string directory = "/" + user_directory_name();
  const bool is_flat = slash != std::string::npos && std::string_view(target).substr(0, slash).ends_with(directory);
  if (!target.starts_with('/') || (!parsed && !is_flat)) return {};
  JournalEntry entry;
  // The same in every run: a later run then finds the draft of a killed one.
  entry.id = parsed ? parsed->id : fmt::format("{:016x}", std::hash<std::string>{}(target));
  entry.path = place.path();
  entry.destination = target;
  entry.mount_point = parsed ? parsed->mount_point : target.substr(0, slash - directory.size());
  if (entry.mount_point.empty()) entry.mount_point = "/";
  entry.host = host_name();
  struct stat link {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0)
    entry.created_unix_s = link.st_mtim.tv_sec;
  return entry;
}

/// Sets `link`, `path` and `cut_short` of `found`. Returns why the link could not be searched for, else "".
std::string find_link_of(const JournalEntry& entry, KnownLinks& known, Survey& found) {
  if (entry.kind != RedirectKind::link) return "";
  found.cut_short = was_cut_short(entry);
  auto link = find_link(entry, known);
  if (!link) return link.error().message;
  found.link = *std::move(link);
  if (found.link && found.link->name != displaced_name(entry))
    found.path = found.link->path();
  else if (found.link && was_removed_after_exchange(entry))
    found.link.reset();
  // The names of a killed run are undone first.
  return found.link || found.cut_short ? "" : doubtful_link(entry, known);
}

/// Sets `has_data` of `found`, and returns the size of the data, or 0. Retired data came home: they, and their
/// companions, count only if a killed run had not finished with them or a link leads to them. Fails if the data cannot
/// be inspected.
Result<std::uint64_t> look_at_data(const JournalEntry& entry, bool is_link_known, Destination& destination,
                                   Survey& found) {
  if (destination.is_retired && !found.cut_short && !found.link && is_link_known) {
    destination.companions.clear();
    return 0;
  }
  const Place& at = destination.data;
  struct stat data {};
  found.has_data = ::fstatat(at.directory.get(), at.name.c_str(), &data, AT_SYMLINK_NOFOLLOW) == 0;
  if (!found.has_data && errno != ENOENT) return system_failure("look at", entry.destination);
  return found.has_data ? static_cast<std::uint64_t>(data.st_size) : 0;
}

/// Returns why missing data are not known to be gone, else "". An untrusted user could have replaced the directory of
/// the mount point.
std::string why_unreachable(const JournalEntry& entry, const Destination& destination, const Survey& found) {
  const bool is_there = found.has_data || !destination.companions.empty();
  if (is_of_another_node(entry) || (!is_there && entry.host != host_name()))
    return fmt::format("'{}' was redirected on the machine '{}'", printable(entry.path), printable(entry.host));
  if (is_there) return "";
  if (entry.filesystem_id != 0 && filesystem_id(destination.data.directory) != entry.filesystem_id)
    return fmt::format("not the file system that was mounted at '{}' then", printable(entry.mount_point));
  if (auto sound = check_directory(entry.mount_point); !sound) return sound.error().message;
  return "";
}

}  // namespace

const char* name_of(RedirectState state) {
  switch (state) {
    case RedirectState::linked: return "linked";
    case RedirectState::empty: return "empty";
    case RedirectState::filled: return "filled";
    case RedirectState::orphan: return "orphan";
    case RedirectState::replaced: return "replaced";
    case RedirectState::gone: return "gone";
    case RedirectState::unreachable: return "unreachable";
  }
  return "";
}

Survey survey(const JournalEntry& recorded, KnownLinks* known) {
  const JournalEntry entry = at_home(recorded);
  Survey found;
  found.path = entry.path;
  const auto unreachable = [&](std::string why) {
    found.state = RedirectState::unreachable;
    found.why = std::move(why);
    return std::move(found);
  };
  // Step 1: the link, which a program may have renamed.
  KnownLinks own;
  const std::string link_unknown = find_link_of(entry, known != nullptr ? *known : own, found);
  // Step 2: the data and their companions.
  auto destination = open_destination(entry);
  if (!destination) return unreachable(destination.error().message);
  const auto size = look_at_data(entry, link_unknown.empty(), *destination, found);
  if (!size) return unreachable(size.error().message);
  // Step 3: what is not there may be on another machine, on a file system that is not mounted, or removed by others.
  if (auto why = why_unreachable(entry, *destination, found); !why.empty()) return unreachable(std::move(why));
  found.destination = *std::move(destination);
  // Step 4: the state.
  if (entry.kind == RedirectKind::directory) {
    found.state = !found.has_data                          ? RedirectState::gone
                  : holds_nothing(found.destination->data) ? RedirectState::empty
                                                           : RedirectState::filled;
    return found;
  }
  name_for_home(*found.destination, found.path.substr(found.path.rfind('/') + 1));
  found.data_bytes = *size;
  for (const Companion& companion : found.destination->companions) found.data_bytes += companion.data_bytes;
  if (!link_unknown.empty()) {
    found.is_home_unreachable = true;
    return unreachable(link_unknown);
  }
  struct stat at_path {};
  const bool path_taken = ::lstat(entry.path.c_str(), &at_path) == 0 && !S_ISLNK(at_path.st_mode);
  if (found.has_data || found.has_companions())
    found.state = found.link ? RedirectState::linked : path_taken ? RedirectState::replaced : RedirectState::orphan;
  else
    found.state = found.link ? RedirectState::empty : RedirectState::gone;
  return found;
}

std::vector<std::string> links_beside(const Place& link, const JournalEntry& entry, KnownLinks& known) {
  std::vector<std::string> paths;
  auto place = beside(link, {});
  if (!place) return paths;
  if (!known.contains(link.directory_path)) {
    auto listed = beside(link, {}).and_then(links_in);
    if (!listed) return paths;
    known.insert_or_assign(link.directory_path, *std::move(listed));
  }
  const auto [begin, end] = known[link.directory_path].equal_range(entry.destination);
  for (auto each = begin; each != end; ++each) {
    place->name = each->second;
    const bool is_other = place->name != link.name && place->name != displaced_name(entry);
    const auto other = own_link(*place);  // also one with several names: they will dangle together
    if (is_other && other && other->target == entry.destination) paths.push_back(place->path());
  }
  std::ranges::sort(paths);
  return paths;
}

Result<std::vector<JournalEntry>> redirects_at(const Journal& journal, std::string path) {
  path = std::string(without_trailing_slashes(path));
  const auto place = locate(AT_FDCWD, path);
  const std::string absolute = place ? place->path() : path;  // the directory may be gone while the entry exists
  const auto target = place ? link_target(*place) : std::nullopt;
  // A link that cannot be looked at is not known to be missing.
  struct stat status {};
  std::optional<Error> unseen;
  if (!place && place.error().system_errno != ENOENT && place.error().system_errno != ENOTDIR) unseen = place.error();
  if (place && !target && ::fstatat(place->directory.get(), place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
      errno != ENOENT)
    unseen = system_failure("inspect", absolute).value();
  const bool is_own = target && own_link_target(*place) == target;
  std::vector<JournalEntry> found;
  for (const JournalEntry& entry : journal.entries) {
    const bool leads_there = is_own && *target == entry.destination;
    if (!leads_there && entry.path != absolute && entry.path != path) continue;
    found.push_back(entry);
    if (leads_there) found.back().path = absolute;
  }
  if (found.empty() && unseen) return pass_on(*std::move(unseen));
  if (!found.empty() || !target) return found;
  if (auto entry = is_own ? entry_from_link(*place, *target) : std::nullopt) {
    found.push_back(*std::move(entry));
    return found;
  }
  if (const auto link = place ? own_link(*place) : std::nullopt;
      link && link->has_other_names && entry_from_link(*place, *target))
    return fail(ErrorKind::infeasible,
                "'{}' is a link that IOSIG did not make, or that has got other names since (hard links); remove those "
                "if it is yours; it stays as it is (it leads to '{}')",
                printable(path), printable(*target));
  return fail(ErrorKind::infeasible, "'{}' is a link that IOSIG did not make (it leads to '{}'); it stays as it is",
              printable(path), printable(*target));
}

}  // namespace iosig
