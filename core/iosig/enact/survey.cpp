#include "iosig/enact/survey.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "iosig/base/text.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/user_folder.h"

namespace iosig {
namespace {

using OpenFolder = std::unique_ptr<DIR, int (*)(DIR*)>;

OpenFolder open_to_list(const Place& folder_of, const char* name) {
  const int fd = ::openat(folder_of.folder.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* opened = fd < 0 ? nullptr : ::fdopendir(fd);
  if (opened == nullptr && fd >= 0) ::close(fd);
  return {opened, ::closedir};
}

bool holds_nothing(const Place& folder) {
  const OpenFolder listed = open_to_list(folder, folder.name.c_str());
  while (const dirent* item = listed ? ::readdir(listed.get()) : nullptr)
    if (const std::string_view name = item->d_name; name != "." && name != "..") return false;
  return listed != nullptr;
}

/// The entry's link: at its path, else under another name in the same folder.
std::optional<Place> find_link(const JournalEntry& entry) {
  auto place = locate(AT_FDCWD, entry.path);
  if (!place) return {};
  if (link_target(*place) == entry.destination) return *std::move(place);
  const OpenFolder listed = open_to_list(*place, ".");
  while (const dirent* item = listed ? ::readdir(listed.get()) : nullptr) {
    if (item->d_type != DT_LNK && item->d_type != DT_UNKNOWN) continue;
    place->name = item->d_name;
    if (place->name == draft_name(entry)) continue;  // a killed run had taken the link out already
    if (link_target(*place) == entry.destination) return *std::move(place);
  }
  return {};
}

/// Where the data are, by way of a folder that is proven to be ours: after a reboot somebody else may have made one.
Result<Place> locate_destination(const JournalEntry& entry) {
  auto folder = open_user_folder(entry.mount_point, IfMissing::refuse);
  if (!folder) return pass_on(folder.error());
  const std::string_view destination = entry.destination;
  if (!destination.starts_with(folder->path + "/") ||
      destination.find('/', folder->path.size() + 1) != std::string_view::npos)
    return fail(ErrorKind::system,
                "'{}' is not in your own folder there, '{}': only the user who redirected can settle",
                printable(destination), printable(folder->path));
  return place_in(std::move(folder->fd), std::string(destination.substr(folder->path.size() + 1)));
}

/// An entry for a link that leads into this user's own folder on some mount point.
std::optional<JournalEntry> entry_from_link(const Place& place, const std::string& target) {
  const std::size_t name = target.rfind('/');
  const std::string folder = "/" + user_folder_name();
  if (name == std::string::npos || !target.starts_with('/') ||
      !std::string_view(target).substr(0, name).ends_with(folder))
    return {};
  JournalEntry entry;
  // The same in every run, so that a second run finds the draft of one that was killed.
  entry.id = fmt::format("{:016x}", std::hash<std::string>{}(target));
  entry.path = place.path();
  entry.destination = target;
  entry.mount_point = target.substr(0, name - folder.size());
  if (entry.mount_point.empty()) entry.mount_point = "/";
  entry.host = host_name();
  return entry;
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

std::string draft_name(const JournalEntry& entry) { return fmt::format(".iosig-{}.draft", entry.id); }

Survey survey(const JournalEntry& entry) {
  Survey found;
  if (entry.kind == RedirectKind::link) found.link = find_link(entry);
  auto destination = locate_destination(entry);
  if (!destination) {
    found.state = RedirectState::unreachable;
    found.why = destination.error().message;
    return found;
  }
  struct stat data {};
  const bool has_data =
      ::fstatat(destination->folder.get(), destination->name.c_str(), &data, AT_SYMLINK_NOFOLLOW) == 0;
  if (!has_data && entry.host != host_name()) {
    found.state = RedirectState::unreachable;
    found.why = fmt::format("'{}' was redirected on the machine '{}'", printable(entry.path), printable(entry.host));
    return found;
  }
  if (!has_data && entry.filesystem_id != 0 && filesystem_id(destination->folder) != entry.filesystem_id) {
    found.state = RedirectState::unreachable;
    found.why = fmt::format("not the file system that was mounted at '{}' then", printable(entry.mount_point));
    return found;
  }
  found.destination = *std::move(destination);
  if (entry.kind == RedirectKind::folder) {
    found.state = !has_data                           ? RedirectState::gone
                  : holds_nothing(*found.destination) ? RedirectState::empty
                                                      : RedirectState::filled;
    return found;
  }
  found.data_bytes = has_data ? static_cast<std::uint64_t>(data.st_size) : 0;
  struct stat at_path {};
  const bool path_taken = ::lstat(entry.path.c_str(), &at_path) == 0 && !S_ISLNK(at_path.st_mode);
  if (has_data)
    found.state = found.link ? RedirectState::linked : path_taken ? RedirectState::replaced : RedirectState::orphan;
  else
    found.state = found.link ? RedirectState::empty : RedirectState::gone;
  return found;
}

Result<std::vector<JournalEntry>> redirects_at(const Journal& journal, std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto place = locate(AT_FDCWD, path);
  const std::string absolute = place ? place->path() : path;  // its folder may be gone, the entry is not
  const auto target = place ? link_target(*place) : std::nullopt;
  std::vector<JournalEntry> found;
  for (const JournalEntry& entry : journal.entries) {
    const bool leads_there = target && *target == entry.destination;
    if (!leads_there && entry.path != absolute && entry.path != path) continue;
    found.push_back(entry);
    if (leads_there) found.back().path = absolute;
  }
  if (!found.empty() || !target) return found;
  if (auto entry = entry_from_link(*place, *target)) {
    found.push_back(*std::move(entry));
    return found;
  }
  return fail(ErrorKind::infeasible, "'{}' is a link that IOSIG did not make (it leads to '{}'); it stays as it is",
              printable(path), printable(*target));
}

}  // namespace iosig
