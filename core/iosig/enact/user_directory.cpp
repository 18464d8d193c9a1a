#include "iosig/enact/user_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "iosig/base/text.h"
#include "iosig/base/trust.h"

namespace iosig {
namespace {

constexpr ino_t initial_user_namespace = 0xeffffffd;  // PROC_USER_INIT_INO, part of the kernel's interface
constexpr std::uint32_t unmapped = 0xffffffff;        // also the size of a map of all ids

/// Returns the user id that this user's files have outside of this user namespace; no value if that id does not
/// distinguish them from other users' files. In the initial namespace, or with all ids mapped: geteuid().
std::optional<uid_t> uid_outside() {
  const uid_t own = ::geteuid();
  struct stat user_namespace {};
  if (::stat("/proc/self/ns/user", &user_namespace) != 0 || user_namespace.st_ino == initial_user_namespace) return own;
  const auto map = read_file("/proc/self/uid_map");
  if (!map) return own;
  for (const std::string_view line : split(*map, '\n')) {
    const auto words = words_of(line);
    if (words.size() != 3) continue;
    const auto inside = parse_count<std::uint32_t>(words[0]), outside = parse_count<std::uint32_t>(words[1]),
               count = parse_count<std::uint32_t>(words[2]);
    if (!inside || !outside || !count || own < *inside || own - *inside >= *count) continue;
    if (*outside == unmapped) return {};
    const uid_t found = *outside + (own - *inside);
    // Root of an outer namespace other than the initial one: namespaces are nested, and the owner outside is unknown.
    struct stat roots {};
    if (found == 0 && *count != unmapped && ::stat("/proc", &roots) == 0 && roots.st_uid != own) return {};
    return found;
  }
  return {};
}

}  // namespace

std::string user_directory_name() { return fmt::format(".iosig-{}", uid_outside().value_or(::geteuid())); }

Result<UserDirectory> open_user_directory(const std::string& mount_point, IfMissing if_missing) {
  const auto uid = uid_outside();
  if (!uid)
    return fail(ErrorKind::system,
                "this user namespace gives user {} no user id of its own outside (/proc/self/uid_map), so its files "
                "could not be told from other users'; nothing is put into '{}'",
                ::geteuid(), printable(mount_point));
  const std::string name = fmt::format(".iosig-{}", *uid);
  // Existing data are opened from any mount point: an open directory that is proven ours cannot be replaced.
  if (if_missing == IfMissing::make)
    if (auto sound = check_directory(mount_point); !sound) return pass_on(sound.error());
  const Fd mount(::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!mount) return system_failure("open the mount point", mount_point);
  UserDirectory directory{{}, mount_point + (mount_point.ends_with('/') ? "" : "/") + name};
  const auto open_directory = [&] {
    return Fd(::openat(mount.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  };
  directory.fd = open_directory();
  if (!directory.fd && errno == ENOENT && if_missing == IfMissing::make) {
    if (::mkdirat(mount.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return system_failure("make the directory", directory.path);
    directory.fd = open_directory();
  }
  if (!directory.fd && errno == EACCES) {  // a umask removed the permissions, now or in the program that created it
    struct stat closed {};
    if (::fstatat(mount.get(), name.c_str(), &closed, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(closed.st_mode) &&
        closed.st_uid == ::geteuid() && (closed.st_mode & 0777) != 0700 && (closed.st_mode & 0077) == 0 &&
        ::fchmodat(mount.get(), name.c_str(), 0700, 0) == 0)
      directory.fd = open_directory();
    else
      errno = EACCES;
  }
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::system,
                "'{}' {}, so nothing of yours is put there: somebody may have planted it; "
                "have it removed, and IOSIG will make its own",
                printable(directory.path), why);
  };
  if (!directory.fd && (errno == ELOOP || errno == ENOTDIR)) return refuse("is not a directory but a link or a file");
  if (!directory.fd && errno == EACCES) return refuse("is closed to you");
  if (!directory.fd) return system_failure("open the directory", directory.path);
  struct stat status {};
  if (::fstat(directory.fd.get(), &status) != 0) return system_failure("inspect", directory.path);
  if (status.st_uid != ::geteuid()) return refuse(fmt::format("belongs to user {}", status.st_uid));
  if ((status.st_mode & 0077) != 0) return refuse(fmt::format("is open to others (mode {:o})", status.st_mode & 07777));
  return directory;
}

Result<std::string> make_destination(const UserDirectory& directory, const std::string& id, std::string_view name) {
  std::string path = fmt::format("{}/{}", directory.path, id);
  if (::mkdirat(directory.fd.get(), id.c_str(), 0700) == 0) {
    if (::fchmodat(directory.fd.get(), id.c_str(), 0700, 0) != 0) return system_failure("set the mode of", path);
  } else if (errno != EEXIST) {
    return write_failure("make the directory", path, errno);
  }
  return fmt::format("{}/{}", path, name);
}

}  // namespace iosig
