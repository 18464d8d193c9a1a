#include "iosig/enact/destination.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/enact/tree.h"
#include "iosig/format/manifest.h"

namespace iosig {
namespace {

std::string name_in(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// Opens the user directory on the entry's mount point if it contains the entry's destination.
Result<UserDirectory> open_directory_of(const JournalEntry& entry) {
  auto directory = open_user_directory(entry.mount_point, IfMissing::refuse);
  if (!directory) return directory;
  const std::string_view destination = entry.destination;
  const auto not_ours = [&] {
    return fail(ErrorKind::system,
                "'{}' is not in your own directory there, '{}': only the user who redirected it can settle it",
                printable(destination), printable(directory->path));
  };
  if (!destination.starts_with(directory->path + "/")) return not_ours();
  const std::string_view below = destination.substr(directory->path.size() + 1);
  const std::size_t slash = below.find('/');
  if (slash == std::string_view::npos) return directory;
  const std::string_view name = below.substr(slash + 1);
  const bool is_plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
  if (slash != id_digits || !id_in(below.substr(0, slash)) || !is_plain) return not_ours();
  return directory;
}

/// Returns the name in the user directory of the whole redirect.
std::string top_name(const JournalEntry& entry) {
  const auto parsed = parse_destination(entry.destination);
  return parsed && parsed->has_directory ? parsed->id : name_in(entry.destination);
}

std::string retired_name_of(const JournalEntry& entry) {
  return retired_name(id_in(top_name(entry)).value_or(entry.id));
}

bool is_manifest(const Fd& directory, const std::string& name) {
  const Fd file(::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::array<char, manifest_begin.size()> begin{};
  return file && ::pread(file.get(), begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
         std::string_view(begin.data(), begin.size()) == manifest_begin;
}

/// Fails if a companion cannot be inspected: **one that is overlooked would be deleted with the destination.**
Result<std::vector<Companion>> companions_in(const Fd& directory, const std::vector<std::string>& names,
                                             const std::string& data_name, const std::string& shown) {
  std::vector<Companion> companions;
  const std::string manifest = manifest_name(data_name);
  for (const std::string& name : names) {
    struct stat status {};
    if (name == data_name || (name == manifest && is_manifest(directory, name))) continue;
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return system_failure("inspect", fmt::format("{}/{}", shown, name));
    }
    const auto kind = S_ISREG(status.st_mode)   ? Companion::Kind::file
                      : S_ISLNK(status.st_mode) ? Companion::Kind::link
                                                : Companion::Kind::other;
    companions.push_back({kind, name, name, static_cast<std::uint64_t>(status.st_size),
                          static_cast<std::uint64_t>(status.st_blocks) * 512});
  }
  return companions;
}

/// Replaces the data's name by its name at home, where it stands as a word: behind `a.db`, `prog-12-wal` becomes
/// `a.db-wal`. Behind `b`, `data.tmp` of the data `a` stays `data.tmp`.
std::string home_name_of(std::string name, const Destination& from) {
  const std::size_t length = from.data.name.size();
  const auto is_inside_word = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (std::size_t at = name.find(from.data.name); at != std::string::npos; at = name.find(from.data.name, at + 1)) {
    if ((at > 0 && is_inside_word(at - 1)) || is_inside_word(at + length)) continue;
    return name.replace(at, length, from.home_name);
  }
  return name;
}

/// The current name of the data, if retired data may exist too.
struct Standing {
  std::string name;
  bool is_retired = false, is_double = false;
};

Standing standing_in(const Fd& parent, const JournalEntry& entry) {
  const std::string top = top_name(entry), retired = retired_name_of(entry);
  const auto exists = [&](const std::string& name) {
    struct stat status {};
    return ::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
  };
  if (!exists(retired)) return {top};
  // An empty directory holds no program's data: it was created in preparation of an open.
  const Fd directory(::openat(parent.get(), top.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto names = directory ? names_in(directory) : Result<std::vector<std::string>>(std::vector<std::string>{top});
  if (exists(top) && !(names && names->empty())) return {top, false, true};
  return {retired, true, false};
}

}  // namespace

Result<Destination> open_destination(const JournalEntry& entry) {
  auto parent = open_directory_of(entry);
  if (!parent) return pass_on(parent.error());
  const auto parsed = parse_destination(entry.destination);
  const bool has_directory = parsed && parsed->has_directory;
  const Standing standing = standing_in(parent->fd, entry);
  const auto at = [&]() { return Fd(::fcntl(parent->fd.get(), F_DUPFD_CLOEXEC, 0)); };
  if (!has_directory) {
    auto data = place_in(at(), standing.name);
    if (!data) return pass_on(data.error());
    return Destination{*std::move(data), std::nullopt, {}, {}, {}, {}, standing.is_retired, standing.is_double};
  }
  Fd directory(::openat(parent->fd.get(), standing.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory && errno == ENOENT) {
    auto missing = place_in(at(), standing.name);
    if (!missing) return pass_on(missing.error());
    return Destination{*std::move(missing), std::nullopt, {}, {}, {}, {}, false, false};
  }
  if (!directory) return system_failure("open the directory", fmt::format("{}/{}", parent->path, standing.name));
  auto names = names_in(directory);
  if (!names) return pass_on(names.error());
  std::ranges::sort(*names);
  auto companions = companions_in(directory, *names, parsed->name, fmt::format("{}/{}", parent->path, standing.name));
  if (!companions) return pass_on(companions.error());
  auto own = place_in(at(), standing.name);
  if (!own) return pass_on(own.error());
  auto data = place_in(std::move(directory), parsed->name);
  if (!data) return pass_on(data.error());
  return Destination{*std::move(data),
                     *std::move(own),
                     fmt::format("{}/{}", parent->path, parsed->id),
                     {},
                     *std::move(names),
                     *std::move(companions),
                     standing.is_retired,
                     standing.is_double};
}

void name_for_home(Destination& destination, const std::string& home_name) {
  destination.home_name = home_name;
  for (Companion& companion : destination.companions) companion.home_name = home_name_of(companion.name, destination);
}

std::string target_at_home(const Destination& from, const std::string& target) {
  if (!from.directory) return target;
  std::string_view within = target;
  const bool is_absolute = within.starts_with('/');
  if (is_absolute) {
    // The path of the mount point may contain symbolic links; a program that resolves the path knows it without them.
    const std::string resolved = from.directory->directory_path + from.path.substr(from.path.rfind('/'));
    const std::string& own = (target + "/").starts_with(from.path + "/") ? from.path : resolved;
    if (!(target + "/").starts_with(own + "/")) return target;
    within.remove_prefix(own.size());
  }
  while (within.starts_with('/') || within.starts_with("./")) within.remove_prefix(1);
  if (within.empty() || within == ".") return is_absolute ? "." : target;
  const std::string name(within.substr(0, within.find('/')));
  const std::string home_name = home_name_of(name, from);
  if (name == ".." || (!is_absolute && (home_name == name || !std::ranges::binary_search(from.names, name))))
    return target;
  return home_name + std::string(within.substr(name.size()));
}

Result<void> retire(const Destination& destination, const JournalEntry& entry) {
  if (destination.is_retired) return {};
  const Place& standing = destination.directory ? *destination.directory : destination.data;
  const int parent = standing.directory.get();
  if (::renameat2(parent, standing.name.c_str(), parent, retired_name_of(entry).c_str(), RENAME_NOREPLACE) == 0)
    return {};
  // The file system lacks the flag; no other redirect uses the name.
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
    if (::renameat(parent, standing.name.c_str(), parent, retired_name_of(entry).c_str()) == 0) return {};
  return system_failure("rename", standing.path());
}

Result<void> restore_retired(const JournalEntry& entry) {
  const auto directory = open_directory_of(entry);
  if (!directory) return pass_on(directory.error());
  const std::string top = top_name(entry), retired = retired_name_of(entry);
  const int at = directory->fd.get();
  const auto parsed = parse_destination(entry.destination);
  struct stat status {};
  // rename(2) replaces an empty directory, but not others. It would replace a flat file.
  const bool may_rename = parsed && parsed->has_directory;
  if (may_rename ? ::renameat(at, retired.c_str(), at, top.c_str()) == 0
                 : ::renameat2(at, retired.c_str(), at, top.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  if (errno == ENOENT) return {};
  if (!may_rename && errno == EINVAL && ::fstatat(at, top.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return ::renameat(at, retired.c_str(), at, top.c_str()) == 0 || errno == ENOENT
               ? Result<void>()
               : system_failure("rename", fmt::format("{}/{}", directory->path, retired));
  if (errno == EEXIST || errno == ENOTEMPTY || errno == EINVAL)
    return fail(
        ErrorKind::infeasible,
        "'{}': '{}/{}' was created again while a run settled it, so there are two: the other is '{}/{}'; move or "
        "remove one of them, then run finalize again",
        printable(entry.path), printable(directory->path), top, printable(directory->path), retired);
  return system_failure("rename", fmt::format("{}/{}", directory->path, retired));
}

Result<void> remove_retired(const JournalEntry& entry) {
  const auto directory = open_directory_of(entry);
  if (!directory) return pass_on(directory.error());
  const std::string retired = retired_name_of(entry);
  auto removed = remove_tree(directory->fd, retired, fmt::format("{}/{}", directory->path, retired));
  const auto parsed = parse_destination(entry.destination);
  if (removed && parsed && parsed->has_directory)  // created again in preparation of an open, and left empty
    (void)::unlinkat(directory->fd.get(), top_name(entry).c_str(), AT_REMOVEDIR);
  return removed;
}

bool has_manifest(const Place& data) { return is_manifest(data.directory, manifest_name(data.name)); }

}  // namespace iosig
