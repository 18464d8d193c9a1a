#include "iosig/enact/destination.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/enact/tree.h"
#include "iosig/format/manifest.h"

namespace iosig {
namespace {

constexpr std::size_t id_digits = 16;

std::string name_in(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// The user's folder on the entry's mount point, if the entry's destination is in it.
Result<UserFolder> open_folder_of(const JournalEntry& entry) {
  auto folder = open_user_folder(entry.mount_point, IfMissing::refuse);
  if (!folder) return folder;
  const std::string_view destination = entry.destination;
  const auto not_ours = [&] {
    return fail(ErrorKind::system,
                "'{}' is not in your own folder there, '{}': only the user who redirected can settle",
                printable(destination), printable(folder->path));
  };
  if (!destination.starts_with(folder->path + "/")) return not_ours();
  const std::string_view below = destination.substr(folder->path.size() + 1);
  const std::size_t slash = below.find('/');
  if (slash == std::string_view::npos) return folder;
  const std::string_view name = below.substr(slash + 1);
  const bool is_plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
  if (slash != id_digits || !id_in(below.substr(0, slash)) || !is_plain) return not_ours();
  return folder;
}

/// The name in the user's folder that stands for the whole redirect.
std::string top_name(const JournalEntry& entry) {
  const auto parsed = parse_destination(entry.destination);
  return parsed && parsed->has_directory ? parsed->id : name_in(entry.destination);
}

std::string retired_name_of(const JournalEntry& entry) {
  return retired_name(id_in(top_name(entry)).value_or(entry.id));
}

std::vector<Companion> companions_among(const std::vector<std::string>& names, const Fd& directory,
                                        const std::string& data_name) {
  std::vector<Companion> companions;
  const std::string manifest = manifest_name(data_name);
  for (const std::string& name : names) {
    struct stat status {};
    if (name == data_name || name.starts_with(manifest)) continue;
    if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto kind = S_ISREG(status.st_mode)   ? Companion::Kind::file
                      : S_ISLNK(status.st_mode) ? Companion::Kind::link
                                                : Companion::Kind::other;
    companions.push_back({kind, name, name, static_cast<std::uint64_t>(status.st_size),
                          static_cast<std::uint64_t>(status.st_blocks) * 512});
  }
  return companions;
}

}  // namespace

Result<Destination> open_destination(const JournalEntry& entry) {
  auto folder = open_folder_of(entry);
  if (!folder) return pass_on(folder.error());
  const auto parsed = parse_destination(entry.destination);
  const bool has_directory = parsed && parsed->has_directory;
  const std::string top = top_name(entry), retired = retired_name_of(entry);
  const auto exists = [&](const std::string& name) {
    struct stat status {};
    return ::fstatat(folder->fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
  };
  const bool is_retired = !exists(top) && exists(retired);
  const std::string& standing = is_retired ? retired : top;
  const auto at = [&]() { return Fd(::fcntl(folder->fd.get(), F_DUPFD_CLOEXEC, 0)); };
  if (!has_directory) {
    auto data = place_in(at(), standing);
    if (!data) return pass_on(data.error());
    return Destination{*std::move(data), std::nullopt, {}, {}, is_retired};
  }
  Fd directory(::openat(folder->fd.get(), standing.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory && errno == ENOENT) {
    auto missing = place_in(at(), top);
    if (!missing) return pass_on(missing.error());
    return Destination{*std::move(missing), std::nullopt, {}, {}, false};
  }
  if (!directory) return system_failure("open the directory", fmt::format("{}/{}", folder->path, standing));
  auto names = names_in(directory);
  if (!names) return pass_on(names.error());
  std::ranges::sort(*names);
  auto companions = companions_among(*names, directory, parsed->name);
  auto own = place_in(at(), standing);
  if (!own) return pass_on(own.error());
  auto data = place_in(std::move(directory), parsed->name);
  if (!data) return pass_on(data.error());
  return Destination{*std::move(data), *std::move(own), std::move(companions), *std::move(names), is_retired};
}

Result<void> retire(const Destination& destination, const JournalEntry& entry) {
  if (destination.is_retired) return {};
  const Place& standing = destination.directory ? *destination.directory : destination.data;
  const int folder = standing.folder.get();
  if (::renameat2(folder, standing.name.c_str(), folder, retired_name_of(entry).c_str(), RENAME_NOREPLACE) == 0)
    return {};
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)  // no such flag there; the name is this redirect's own
    if (::renameat(folder, standing.name.c_str(), folder, retired_name_of(entry).c_str()) == 0) return {};
  return system_failure("rename", standing.path());
}

Result<void> restore_retired(const JournalEntry& entry) {
  const auto folder = open_folder_of(entry);
  if (!folder) return pass_on(folder.error());
  const std::string top = top_name(entry), retired = retired_name_of(entry);
  struct stat status {};
  if (::fstatat(folder->fd.get(), top.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return {};
  if (::renameat(folder->fd.get(), retired.c_str(), folder->fd.get(), top.c_str()) == 0 || errno == ENOENT) return {};
  return system_failure("rename", fmt::format("{}/{}", folder->path, retired));
}

Result<void> remove_retired(const JournalEntry& entry) {
  const auto folder = open_folder_of(entry);
  if (!folder) return pass_on(folder.error());
  const std::string retired = retired_name_of(entry);
  return remove_tree(folder->fd, retired, fmt::format("{}/{}", folder->path, retired));
}

}  // namespace iosig
