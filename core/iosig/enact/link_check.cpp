#include "iosig/enact/link_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "iosig/base/recent_fact.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// The file system that last refused a link in this process; 0: none has. With a second such file system, each change
/// between them costs one more attempt.
std::atomic<dev_t> refusing_device{0};

/// The directory in which a link to the path, a user directory, was followed. By its path, too: a second mount of it
/// may have the option nosymfollow.
constinit RecentFact followed;

/// Returns the directory above the redirect's own.
std::string_view user_directory_in(std::string_view destination) {
  const std::string_view own = destination.substr(0, destination.rfind('/'));
  return own.substr(0, own.rfind('/'));
}

/// Whether every file system can have the name: what one is found to do with it, it does with the others.
bool is_plain(std::string_view name) {
  constexpr std::size_t longest = 100;  // those that encrypt names have room for 143 bytes, not for 255
  return name.size() <= longest && std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' ||
                  c == '-';
         });
}

/// Advice for a link that the kernel does not follow.
std::string_view remedy(int failure) {
  if (failure == EPERM) return "; sshfs follows links out of its mount with -o no_contain_symlinks";
  if (failure == ELOOP) return "; the mount may have the option nosymfollow";
  return "";
}

/// Whether the directory itself forbids new names.
bool is_immutable_directory(const Fd& directory) {
  struct statx status {};
  return ::statx(directory.get(), "", AT_EMPTY_PATH, 0, &status) == 0 &&
         (status.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
}

}  // namespace

Result<void> links_lead_on(const Place& place, const Storage& storage) {
  if (refusing_device.load(std::memory_order_relaxed) == place.device)
    return fail(ErrorKind::system,
                "'{}' stays where it is: its file system follows no symbolic link to other storage, as was found out "
                "before",
                printable(place.path()));
  for (const MountPoint& mount : storage.mount_points) {
    // The program uses files below this path, so stat(2) blocks on nothing that the program does not block on itself.
    if (mount.follows_links || !is_below(place.directory_path, mount.path)) continue;
    if (struct stat status{}; ::stat(mount.path.c_str(), &status) == 0 && status.st_dev == place.device)
      return fail(ErrorKind::system,
                  "'{}' stays where it is: the storage description says that the file system at '{}' does not follow "
                  "symbolic links to other storage (follows_links = false)",
                  printable(place.path()), printable(mount.path));
  }
  return {};
}

Result<void> check_link(const Place& place, const std::string& destination) {
  const FactSubject subject{place.device, place.inode, user_directory_in(destination), place.directory_path};
  if (is_plain(place.name) && followed.is_known(subject)) return {};
  struct stat status {};
  const bool follows = ::fstatat(place.directory.get(), place.name.c_str(), &status, 0) == 0 || errno == ENOENT;
  const int failure = follows ? 0 : errno;
  if (failure == ENOMEM || failure == EINTR) return {};  // not related to links
  const auto text = link_target(place);
  if (follows && text == destination) {
    followed.keep(subject);
    return {};
  }
  // Another program replaced the link meanwhile, and the open followed that.
  if (::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISLNK(status.st_mode))
    return {};
  refusing_device = place.device;
  if (follows)
    return fail(ErrorKind::system,
                "'{}' stays where it is: on its file system a symbolic link to '{}' leads to '{}' instead",
                printable(place.path()), printable(destination), printable(text.value_or("nothing")));
  return fail(ErrorKind::system,
              "'{}' stays where it is: its file system does not follow a symbolic link to '{}': {}{}",
              printable(place.path()), printable(destination), std::strerror(failure), remedy(failure));
}

tl::unexpected<Error> refused_link(const Place& place, int failure) {
  const bool has_no_links = failure == EPERM || failure == ENOSYS || failure == EOPNOTSUPP;
  if (!has_no_links || is_immutable_directory(place.directory))
    return system_failure("make a link at", place.path(), failure);
  refusing_device = place.device;
  return fail(ErrorKind::system,
              "cannot make a link at '{}': {}: its file system may have no symbolic links; the file stays where it is",
              printable(place.path()), std::strerror(failure));
}

}  // namespace iosig
