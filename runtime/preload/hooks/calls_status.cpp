// Calls that read and set the status of a file: stat(2), statfs(2), fpathconf(3), access(2), chmod(2), chown(2),
// utimensat(2), truncate(2) and their variants.

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"
#include "preload/files/answer.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"

namespace iosig::preload {
namespace {

/// Calls ask(directory, path of the manifest) for the container at `path`. Returns 0 or errno.
template <class Ask>
int ask_of_manifest(int directory, const char* path, Ask ask) {
  return with_manifest_of(path, [&](const char* manifest) { return ask(directory, manifest); }) == 0 ? 0 : errno;
}

/// Runs `step` with the container at `path`, relative to `directory`. If the caller has no permission to read the
/// container's directory, applies `ask` to the manifest instead, which at least the file's owner may change. Returns 0
/// or errno.
template <class Step, class Ask>
int with_container(int directory, const char* path, Step step, Ask ask) {
  const EngineGuard inside;
  if (!inside) return EDEADLK;
  return run_isolated_step([&] {
    const Fd opened(open_directory_at(directory, path));
    if (!opened && errno == EACCES) return ask_of_manifest(directory, path, ask);
    if (!opened) return errno;
    if (const auto known = known_container(opened.get())) return step(*known);
    const auto container = SharedContainer::open(opened.get(), say_failure);
    if (!container) return errno_of(container.error());
    return step(**container);
  });
}

/// Replaces the kernel's status of a directory by the file's, if the directory is a container. The size is unknown, and
/// set to 0, if the caller may not read the index. Fails if the process has no free descriptor or memory: the program
/// might write at an offset that it derives from the size.
[[gnu::noinline]] int correct_directory(int directory, const char* path, struct stat& status) {
  if (!is_container_at(directory, path)) return 0;
  const auto of_directory = status;
  const int before = errno;
  const auto none = [](int, const char*) {
    errno = EACCES;
    return -1;
  };
  const int failure = with_container(
      directory, path, [&](SharedContainer& container) { return container.status().get(status, 0); }, none);
  if (failure == EMFILE || failure == ENFILE || failure == ENOMEM || failure == EINTR) {
    errno = failure;
    return -1;
  }
  if (failure != 0) {
    struct stat manifest {};
    status = of_directory;
    (void)ask_of_manifest(directory, path, [&](int from, const char* name) {
      return ::fstatat(from, name, &manifest, AT_SYMLINK_NOFOLLOW);
    });
    show_manifest(manifest, status);
    status.st_size = status.st_blocks = 0;
  }
  errno = before;
  return 0;
}

int correct(int directory, const char* path, struct stat& status) {
  return S_ISDIR(status.st_mode) ? correct_directory(directory, path, status) : 0;
}

[[gnu::noinline]] int status_of_file(int fd, struct stat* status) {
  if (status == nullptr) {
    errno = EFAULT;
    return -1;
  }
  const int done = with_ready_file(fd, [&](OpenFile& file) {
    const int failure = file.container->status().get(*status, 1);
    if (failure == 0 && !is_in_place(*file.shared) && is_unlinked(file.directory)) status->st_nlink = 0;
    return -failure;
  });
  return done != 0 && is_ordinary_now(fd) ? real().fstat(fd, status) : done;
}

int status_at(int directory, const char* path, struct stat* status, int flags) {
  if ((flags & AT_EMPTY_PATH) != 0 && is_ours(directory) && is_empty_string(path))
    return status_of_file(directory, status);
  if (const int named = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? -1 : named_descriptor(path); named >= 0)
    return status_of_file(named, status);
  if (is_taken_for_directory(directory, path)) return -1;
  const int done = real().fstatat(directory, path, status, flags);
  return done != 0 ? as_below_file(done, directory, path) : correct(directory, path, *status);
}

int status_of(int fd, struct stat* status) {
  if (is_ours(fd)) return status_of_file(fd, status);
  const int done = real().fstat(fd, status);
  return done != 0 ? done : correct(fd, "", *status);
}

void tell(const struct stat& from, struct statx& status) {
  const auto time_of = [](const timespec& time) {
    statx_timestamp told{};
    told.tv_sec = time.tv_sec;
    told.tv_nsec = static_cast<std::uint32_t>(time.tv_nsec);
    return told;
  };
  status.stx_mask = STATX_BASIC_STATS;
  status.stx_attributes = 0;
  status.stx_blksize = static_cast<std::uint32_t>(from.st_blksize);
  status.stx_nlink = static_cast<std::uint32_t>(from.st_nlink);
  status.stx_uid = from.st_uid;
  status.stx_gid = from.st_gid;
  status.stx_mode = static_cast<std::uint16_t>(from.st_mode);
  status.stx_ino = from.st_ino;
  status.stx_size = static_cast<std::uint64_t>(from.st_size);
  status.stx_blocks = static_cast<std::uint64_t>(from.st_blocks);
  status.stx_atime = time_of(from.st_atim);
  status.stx_mtime = time_of(from.st_mtim);
  status.stx_ctime = time_of(from.st_ctim);
  status.stx_dev_major = major(from.st_dev);
  status.stx_dev_minor = minor(from.st_dev);
}

/// Returns the result of with_container(step, ask) if the path is a container, else the result of `otherwise`.
template <class Step, class Ask, class Otherwise>
int answer_at(int directory, const char* path, int flags, Step step, Ask ask, Otherwise otherwise) {
  if (path == nullptr) return otherwise();
  if (is_taken_for_directory(directory, path)) return -1;
  const ResolvedPath meant(directory, path, flags);
  const bool is_container = !meant.is_open_file() && (flags & AT_SYMLINK_NOFOLLOW) != 0
                                ? is_container_not_link_at(directory, path)
                                : is_container_at(meant.directory, meant.path);
  if (!is_container) return as_below_file(otherwise(), directory, path);
  const int before = errno;
  const int failure = with_container(meant.directory, meant.path, step, ask);
  if (failure == EFBIG) signal_size_limit();
  return static_cast<int>(answer(-failure, before));
}

timespec timespec_of(const timeval& time) { return {time.tv_sec, time.tv_usec * 1000}; }

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

int hook::fstatat(int directory, const char* path, struct stat* status, int flags) {
  return status_at(directory, path, status, flags);
}
int hook::stat(const char* path, struct stat* status) { return status_at(AT_FDCWD, path, status, 0); }
int hook::lstat(const char* path, struct stat* status) {
  return status_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int hook::fstat(int fd, struct stat* status) { return status_of(fd, status); }

// Programs that were linked with glibc before 2.33 call these.
int hook::__xstat(int, const char* path, struct stat* status) { return status_at(AT_FDCWD, path, status, 0); }
int hook::__lxstat(int, const char* path, struct stat* status) {
  return status_at(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int hook::__fxstat(int, int fd, struct stat* status) { return status_of(fd, status); }
int hook::__fxstatat(int, int directory, const char* path, struct stat* status, int flags) {
  return status_at(directory, path, status, flags);
}

int hook::statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) {
  struct stat known {};
  const bool is_directory_meant = (flags & AT_EMPTY_PATH) != 0 && is_ours(directory) && is_empty_string(path);
  const int named = is_directory_meant ? directory : (flags & AT_SYMLINK_NOFOLLOW) != 0 ? -1 : named_descriptor(path);
  if (named >= 0) {
    if (status_of_file(named, &known) != 0) return -1;
    *status = {};
    tell(known, *status);
    return 0;
  }
  if (is_taken_for_directory(directory, path)) return -1;
  const int done = real().statx(directory, path, flags, mask | STATX_TYPE, status);
  if (done != 0) return as_below_file(done, directory, path);
  if (!S_ISDIR(status->stx_mode) || !is_container_at(directory, path)) return done;
  if (status_at(directory, path, &known, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return -1;
  tell(known, *status);
  return 0;
}

int hook::fstatfs(int fd, struct statfs* status) {
  if (!is_ours(fd)) return real().fstatfs(fd, status);
  return static_cast<int>(
      with_open_file(fd, [&](OpenFile& file) { return real().fstatfs(file.directory, status) == 0 ? 0 : -errno; }));
}
int hook::fstatvfs(int fd, struct statvfs* status) {
  if (!is_ours(fd)) return real().fstatvfs(fd, status);
  return static_cast<int>(
      with_open_file(fd, [&](OpenFile& file) { return real().fstatvfs(file.directory, status) == 0 ? 0 : -errno; }));
}

/// The limits of the file system where the container lies. -1 with errno as before says that there is no limit.
long hook::fpathconf(int fd, int name) {
  if (!is_ours(fd)) return real().fpathconf(fd, name);
  long limit = 1;
  const std::int64_t done = with_open_file(fd, [&](OpenFile& file) {
    if (name == _PC_ASYNC_IO) return 0;  // as of a file; libc says no of a directory
    errno = 0;
    limit = real().fpathconf(file.directory, name);
    return limit == -1 ? -errno : 0;
  });
  return done == 0 ? limit : -1;
}

int hook::faccessat(int directory, const char* path, int mode, int flags) {
  if (is_taken_for_directory(directory, path)) return -1;
  const ResolvedPath meant(directory, path, flags);
  if (path == nullptr || mode == F_OK || !is_container_at(meant.directory, meant.path))
    return as_below_file(real().faccessat(directory, path, mode, flags), directory, path);
  const int before = errno;
  const int done = access_container(meant.directory, meant.path, mode, flags);
  if (done == 0) errno = before;
  return done;
}
int hook::access(const char* path, int mode) { return hook::faccessat(AT_FDCWD, path, mode, 0); }
int hook::euidaccess(const char* path, int mode) { return hook::faccessat(AT_FDCWD, path, mode, AT_EACCESS); }

int hook::fchmod(int fd, mode_t mode) {
  if (!is_ours(fd)) return real().fchmod(fd, mode);
  return with_ready_file(fd, [&](OpenFile& file) { return -file.container->set_mode(mode); });
}
int hook::fchmodat(int directory, const char* path, mode_t mode, int flags) {
  return answer_at(
      directory, path, flags, [&](SharedContainer& container) { return container.set_mode(mode); },
      [&](int from, const char* manifest) { return real().fchmodat(from, manifest, mode, 0); },
      [&] { return real().fchmodat(directory, path, mode, flags); });
}
int hook::chmod(const char* path, mode_t mode) { return hook::fchmodat(AT_FDCWD, path, mode, 0); }
int hook::lchmod(const char* path, mode_t mode) { return hook::fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW); }

int hook::fchown(int fd, uid_t user, gid_t group) {
  if (!is_ours(fd)) return real().fchown(fd, user, group);
  return with_ready_file(fd, [&](OpenFile& file) { return -file.container->set_owner(user, group); });
}
int hook::fchownat(int directory, const char* path, uid_t user, gid_t group, int flags) {
  return answer_at(
      directory, path, flags, [&](SharedContainer& container) { return container.set_owner(user, group); },
      [&](int from, const char* manifest) { return real().fchownat(from, manifest, user, group, 0); },
      [&] { return real().fchownat(directory, path, user, group, flags); });
}
int hook::chown(const char* path, uid_t user, gid_t group) { return hook::fchownat(AT_FDCWD, path, user, group, 0); }
int hook::lchown(const char* path, uid_t user, gid_t group) {
  return hook::fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW);
}

int hook::futimens(int fd, const timespec times[2]) {
  if (!is_ours(fd)) return real().futimens(fd, times);
  return with_ready_file(fd, [&](OpenFile& file) { return -file.container->set_times(times); });
}
int hook::utimensat(int directory, const char* path, const timespec times[2], int flags) {
  if (path == nullptr)
    return is_ours(directory) ? hook::futimens(directory, times) : real().utimensat(directory, path, times, flags);
  if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) return real().utimensat(directory, path, times, flags);
  return answer_at(
      directory, path, flags, [&](SharedContainer& container) { return container.set_times(times); },
      [&](int from, const char* manifest) { return real().utimensat(from, manifest, times, 0); },
      [&] { return real().utimensat(directory, path, times, flags); });
}
static int set_times(int directory, const char* path, const timeval times[2], int flags) {
  if (times == nullptr) return hook::utimensat(directory, path, nullptr, flags);
  const timespec given[2] = {timespec_of(times[0]), timespec_of(times[1])};
  return hook::utimensat(directory, path, given, flags);
}
int hook::utimes(const char* path, const timeval times[2]) { return set_times(AT_FDCWD, path, times, 0); }
int hook::lutimes(const char* path, const timeval times[2]) {
  return set_times(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}
int hook::futimes(int fd, const timeval times[2]) {
  if (times == nullptr) return hook::futimens(fd, nullptr);
  const timespec given[2] = {timespec_of(times[0]), timespec_of(times[1])};
  return hook::futimens(fd, given);
}
int hook::futimesat(int directory, const char* path, const timeval times[2]) {
  return path == nullptr ? hook::futimes(directory, times) : set_times(directory, path, times, 0);
}
int hook::utime(const char* path, const utimbuf* times) {
  const timespec given[2] = {{times != nullptr ? times->actime : 0, 0}, {times != nullptr ? times->modtime : 0, 0}};
  return hook::utimensat(AT_FDCWD, path, times != nullptr ? given : nullptr, 0);
}

int hook::truncate(const char* path, off_t size) {
  if (size < 0) return real().truncate(path, size);
  int refused = 0;
  const auto step = [&](SharedContainer& container) {
    return refused != 0 ? refused : container.truncate(nullptr, size);
  };
  const auto ask = [](int from, const char* manifest) { return ::faccessat(from, manifest, W_OK, AT_EACCESS); };
  if (path != nullptr) {
    const ResolvedPath meant(AT_FDCWD, path);
    const int before = errno;
    if (is_container_at(meant.directory, meant.path) &&
        access_container(meant.directory, meant.path, W_OK, AT_EACCESS) != 0)
      refused = errno;
    errno = before;
  }
  return answer_at(AT_FDCWD, path, 0, step, ask, [&] { return real().truncate(path, size); });
}
