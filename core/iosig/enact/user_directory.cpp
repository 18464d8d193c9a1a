#include "iosig/enact/user_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>

#include "iosig/base/kept_fds.h"
#include "iosig/base/recent_fact.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"

namespace iosig {
namespace {

constexpr ino_t initial_user_namespace = 0xeffffffd;  // PROC_USER_INIT_INO, part of the kernel's interface
constexpr std::uint32_t unmapped = 0xffffffff;        // also the size of a map of all ids

/// A line of /proc/self/uid_map: the ids [inside, inside + count) are [outside, outside + count) outside.
struct IdRange {
  std::uint32_t inside = 0, outside = 0, count = 0;
  [[nodiscard]] bool contains(uid_t id) const { return id >= inside && id - inside < count; }
};

std::optional<IdRange> parse_id_range(std::string_view line) {
  const auto words = words_of(line);
  if (words.size() != 3) return {};
  const auto inside = parse_count<std::uint32_t>(words[0]), outside = parse_count<std::uint32_t>(words[1]),
             count = parse_count<std::uint32_t>(words[2]);
  if (!inside || !outside || !count) return {};
  return IdRange{*inside, *outside, *count};
}

/// Returns the user id that this user's files have outside of this user namespace; no value if that id does not
/// distinguish them from other users' files. In the initial namespace, or with all ids mapped: geteuid().
///
/// Example: in a container with the map `0 100000 65536`, the files of user 5 belong to 100005 outside, and the user's
/// directory is `.iosig-100005`, unlike that of user 5 of the host.
std::optional<uid_t> find_uid_outside(uid_t own) {
  struct stat user_namespace {};
  if (::stat("/proc/self/ns/user", &user_namespace) != 0 || user_namespace.st_ino == initial_user_namespace) return own;
  const auto map = read_file("/proc/self/uid_map");
  if (!map) return own;
  for (const std::string_view line : split(*map, '\n')) {
    const auto range = parse_id_range(line);
    if (!range || !range->contains(own)) continue;
    if (range->outside == unmapped) return {};
    const uid_t found = range->outside + (own - range->inside);
    // Root of an outer namespace other than the initial one: namespaces are nested, and the owner outside is unknown.
    struct stat roots {};
    if (found == 0 && range->count != unmapped && ::stat("/proc", &roots) == 0 && roots.st_uid != own) return {};
    return found;
  }
  return {};
}

/// The same, found once for each user id: the last one and its id outside, in one word. A process that enters another
/// user namespace and takes the same id there would get the name of somebody else's directory, which check_own()
/// refuses.
std::optional<uid_t> uid_outside() {
  static std::atomic<std::uint64_t> known{~std::uint64_t{0}};
  const uid_t own = ::geteuid();
  if (const std::uint64_t last = known.load(std::memory_order_relaxed); last >> 32 == own && own != unmapped)
    return static_cast<uid_t>(last);
  const auto outside = find_uid_outside(own);
  if (outside) known.store(std::uint64_t{own} << 32 | *outside, std::memory_order_relaxed);
  return outside;
}

tl::unexpected<Error> refuse(const std::string& path, std::string_view why) {
  return fail(ErrorKind::system,
              "'{}' {}, so nothing of yours is put there: somebody may have planted it; "
              "have it removed, and IOSIG will make its own",
              printable(path), why);
}

Fd open_below(const Fd& mount, const std::string& name) {
  return Fd(::openat(mount.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Gives this user's directory the mode 0700 if a umask removed permissions, now or in the program that created it.
bool restore_mode(const Fd& mount, const std::string& name) {
  struct stat closed {};
  return ::fstatat(mount.get(), name.c_str(), &closed, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(closed.st_mode) &&
         closed.st_uid == ::geteuid() && (closed.st_mode & 0777) != 0700 && (closed.st_mode & 0077) == 0 &&
         set_mode_at(mount.get(), name.c_str(), 0700) == 0;
}

/// Opens the directory `name` in `mount`; creates it if it may. Anyone may have made it: see check_own().
Result<Fd> open_or_make(const Fd& mount, const std::string& name, const std::string& path, IfMissing if_missing) {
  Fd directory = open_below(mount, name);
  if (!directory && errno == ENOENT && if_missing == IfMissing::make) {
    if (::mkdirat(mount.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return system_failure("make the directory", path);
    directory = open_below(mount, name);
  }
  if (!directory && errno == EACCES) {
    if (restore_mode(mount, name))
      directory = open_below(mount, name);
    else
      errno = EACCES;
  }
  if (directory) return directory;
  if (errno == ELOOP || errno == ENOTDIR) return refuse(path, "is not a directory but a link or a file");
  if (errno == EACCES) return refuse(path, "is closed to you");
  return system_failure("open the directory", path);
}

/// Proves that the open directory, whose status is `status`, is this user's and closed to others.
Result<void> check_own(const UserDirectory& directory, const struct stat& status) {
  if (status.st_uid != ::geteuid()) return refuse(directory.path, fmt::format("belongs to user {}", status.st_uid));
  if ((status.st_mode & 0077) != 0)  // it may hold data, perhaps with a mode that a chmod -R gave it
    return fail(ErrorKind::system,
                "'{}' is open to others (mode {:o}), so it is not used: somebody may have planted what it holds; chmod "
                "700 it if you trust that, else have it removed, with all data in it",
                printable(directory.path), status.st_mode & 07777);
  return {};
}

/// The user directory to which a path led that check_directory() accepted.
constinit RecentFact safe;

FactSubject subject_of(const UserDirectory& directory, const struct stat& status) {
  return {status.st_dev, status.st_ino, directory.path};
}

/// Opens the directory, and creates it if it may, after a check of the path to it.
Result<Fd> open_from_root(const std::string& mount_point, const std::string& name, const std::string& path,
                          IfMissing if_missing) {
  // Existing data are opened from any mount point: an open directory that is proven ours cannot be replaced.
  if (if_missing == IfMissing::make)
    if (auto sound = check_directory(mount_point); !sound) return pass_on(sound.error());
  const Fd mount(::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!mount) return system_failure("open the mount point", mount_point);
  return open_or_make(mount, name, path, if_missing);
}

}  // namespace

std::string user_directory_name() { return fmt::format(".iosig-{}", uid_outside().value_or(::geteuid())); }

/// Example: /dev/shm, where every user may create files. An untrusted user has made `.iosig-1000` first: a link makes
/// open_or_make() fail, a directory makes check_own() fail. The order counts: the directory is opened, and then the
/// open one is judged, because a name could be replaced in between.
Result<UserDirectory> open_user_directory(const std::string& mount_point, IfMissing if_missing) {
  const auto uid = uid_outside();
  if (!uid)
    return fail(ErrorKind::system,
                "this user namespace gives user {} no user id of its own outside (/proc/self/uid_map), so its files "
                "could not be told from other users'; nothing is put into '{}'",
                ::geteuid(), printable(mount_point));
  const std::string name = fmt::format(".iosig-{}", *uid);
  UserDirectory directory{{}, mount_point + (mount_point.ends_with('/') ? "" : "/") + name};
  struct stat status {};
  // Of many redirects in a row only the first checks the path: in a tenth of a second only a trusted user could make it
  // unsafe, and it still leads to the same directory.
  if (if_missing == IfMissing::make) directory.fd = Fd(::open(directory.path.c_str(), directory_flags));
  if (!directory.fd || ::fstat(directory.fd.get(), &status) != 0 || !safe.is_known(subject_of(directory, status))) {
    auto opened = open_from_root(mount_point, name, directory.path, if_missing);
    if (!opened) return pass_on(opened.error());
    directory.fd = *std::move(opened);
    if (::fstat(directory.fd.get(), &status) != 0) return system_failure("inspect", directory.path);
    if (if_missing == IfMissing::make) safe.keep(subject_of(directory, status));
  }
  if (auto own = check_own(directory, status); !own) return pass_on(own.error());
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
