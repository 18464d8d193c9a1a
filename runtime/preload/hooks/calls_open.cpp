// open(2) and its variants: opens containers, and creates new files as containers where a binding asks for it.

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <cstdarg>
#include <string_view>
#include <utility>

#include "iosig/base/kept_fds.h"
#include "preload/files/drained.h"
#include "preload/files/opening.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"

namespace iosig::preload {
namespace {

constexpr int max_moves = 1000;  ///< limit of the retries while other processes replace the container at a path

bool makes_temporary(int flags) { return (flags & __O_TMPFILE) == __O_TMPFILE && (flags & O_TMPFILE) == O_TMPFILE; }

/// Opens the container of the open directory `directory` with the program's flags, after checking its permissions.
/// Takes ownership of `directory`. Returns -1 with errno on failure.
int open_checked(int directory, int flags) {
  int failure = 0;
  if ((flags & O_DIRECTORY) != 0) failure = ENOTDIR;
  int wanted = (flags & O_ACCMODE) == O_RDONLY ? R_OK : (flags & O_ACCMODE) == O_WRONLY ? W_OK : R_OK | W_OK;
  if ((flags & O_TRUNC) != 0) wanted |= W_OK;
  const char* const manifest = container_manifest_name.data();
  if (failure == 0 && ::faccessat(directory, manifest, wanted, AT_EACCESS) != 0) failure = errno;
  if (failure == 0 && (flags & O_NOATIME) != 0) {  // only for the owner: the kernel checks that for the directory
    const int owned = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
    if (owned < 0) failure = errno;
    if (owned >= 0) ::close(owned);
  }
  if (failure == 0) return open_container(directory, flags);
  ::close(directory);
  errno = failure;
  return -1;
}

/// Whether the path no longer leads to the file that was found there.
bool is_elsewhere(const struct stat& found, int directory, const char* path) {
  struct stat now {};
  return ::fstatat(directory, path, &now, 0) != 0 || now.st_dev != found.st_dev || now.st_ino != found.st_ino;
}

/// Opens the container that was found at the path. Sets `has_moved` if that fails because the path changed meanwhile.
int open_found(int container, int directory, const char* path, int flags, bool& has_moved) {
  struct stat found {};
  const bool is_known = ::fstat(container, &found) == 0;
  const int fd = open_checked(container, flags);
  if (fd >= 0 || !is_known) return fd;
  const int failure = errno;
  has_moved = is_elsewhere(found, directory, path);
  errno = failure;
  return -1;
}

/// Opens the container of `fd` again with a new open file description, as open("/dev/fd/N") does for a file.
int open_again(int fd, int flags) {
  const InUse file(fd);
  const int directory =
      file && file->directory >= 0 ? ::openat(file->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (directory >= 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL)) return open_checked(directory, flags);
  const int failure = directory < 0 ? EIO : EEXIST;
  if (directory >= 0) ::close(directory);
  errno = failure;
  return -1;
}

/// Result of make_if_bound(). `container`: the call is complete, with its result in `fd` and errno. `ordinary`: the
/// caller opens the path in the ordinary way.
enum class Found { container, ordinary };

Found make_if_bound(int directory, const char* path, int flags, mode_t mode, int& fd) {
  fd = -1;
  if ((flags & O_CREAT) == 0 || makes_temporary(flags) || !is_bound(directory, path)) return Found::ordinary;
  struct stat status {};
  const int before = errno;
  const bool is_free = ::fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  errno = before;
  if (!is_free) return Found::ordinary;
  const int failure = (flags & O_DIRECTORY) != 0 ? EINVAL : make_container(directory, path, mode);
  if (failure == EEXIST && (flags & O_EXCL) == 0) return Found::ordinary;  // another process made it first
  if (failure != 0) {
    errno = failure;
    return Found::container;
  }
  const int made = open_directory_at(directory, path, O_NOFOLLOW);
  // As with open(2), the creator may write regardless of the mode.
  if (made >= 0) fd = open_container(made, flags & ~O_TRUNC);
  return Found::container;
}

/// One attempt to open the path. A container is a directory for the kernel and a regular file for the program. If `box`
/// is a container and a binding makes `new` one, then in the order of the code:
///
///   open("/dev/fd/5", O_RDONLY)          descriptor 5 is a container: opens it again
///   open("box/", O_RDONLY)               ENOTDIR; with O_CREAT EISDIR
///   open("box/part", O_CREAT, mode)      ENOTDIR
///   open("box", O_TMPFILE | O_RDWR)      ENOTDIR
///   open("new", O_CREAT | O_RDWR, mode)  makes a container
///   the kernel opens any other path; afterwards:
///     open("box", O_PATH)                keeps the descriptor of the directory
///     open("box", O_RDONLY)              the kernel opened the directory: opens its container
///     open("box", O_RDWR)                the kernel failed with EISDIR: opens the container
///     open("file", ...)                  keeps the kernel's result, also for a directory that is not a container
///
/// Another process can remove or replace the container between two of these steps. The call then fails and sets
/// `has_moved`, and the caller tries again.
int open_once(int directory, const char* path, int flags, mode_t mode, bool& has_moved) {
  const int before = errno;
  has_moved = false;
  if (const int named = named_descriptor(path); named >= 0 && (flags & O_PATH) == 0) {
    const EngineGuard inside;
    if (inside) {
      const int fd = open_again(named, flags);
      if (fd >= 0) errno = before;
      return fd;
    }
  }
  if (is_taken_for_directory(directory, path)) {
    if ((flags & O_CREAT) != 0 && std::string_view(path).ends_with('/')) errno = EISDIR;
    return -1;
  }
  if ((flags & O_CREAT) != 0 && would_lie_in_container(directory, path)) return -1;
  if (makes_temporary(flags) && path != nullptr && is_container_at(directory, path)) {
    errno = ENOTDIR;
    return -1;
  }
  {
    const EngineGuard inside;
    int fd = -1;
    if (inside && (flags & O_CREAT) != 0 && make_if_bound(directory, path, flags, mode, fd) == Found::container) {
      if (fd >= 0) errno = before;
      return fd;
    }
  }
  int fd = real().openat(directory, path, flags, mode);
  if (fd < 0 && errno == EACCES && (flags & O_DIRECTORY) != 0 && is_container_at(directory, path)) errno = ENOTDIR;
  if (fd < 0 && errno != EISDIR) return as_below_file(fd, directory, path);
  // With O_PATH the descriptor stays that of the directory. With O_PATH and O_DIRECTORY the call must fail with
  // ENOTDIR.
  const bool is_read = (flags & O_PATH) != 0 ? (flags & O_DIRECTORY) != 0 : (flags & O_ACCMODE) == O_RDONLY;
  const bool may_be_directory = fd < 0 || (is_read && !makes_temporary(flags));
  if (!may_be_directory) return fd;
  const EngineGuard inside;
  if (!inside) return fd;
  if (fd >= 0) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISDIR(status.st_mode)) return fd;
    if (!is_container_at(fd, "")) {
      has_moved = is_elsewhere(status, directory, path);  // it may have been a container a moment ago
      if (!has_moved) return fd;
      ::close(fd);
      errno = ENOENT;
      return -1;
    }
    fd = open_found(keep_for_engine(fd), directory, path, flags, has_moved);
  } else {
    if (makes_temporary(flags) || !is_container_at(directory, path)) {
      struct stat now {};
      has_moved =
          !makes_temporary(flags) && !std::string_view(path).ends_with('/') &&
          (::fstatat(directory, path, &now, 0) != 0 || !S_ISDIR(now.st_mode) || is_container_at(directory, path));
      errno = EISDIR;
      return -1;
    }
    if ((flags & O_DIRECTORY) != 0) {
      errno = ENOTDIR;
      return -1;
    }
    const int opened = open_directory_at(directory, path, flags & O_NOFOLLOW);
    has_moved = opened < 0 && (errno == ENOENT || errno == ENOTDIR);
    fd = opened < 0 ? -1 : open_found(opened, directory, path, flags, has_moved);
  }
  if (fd >= 0) errno = before;
  return fd;
}

/// Closes descriptors that the engine can open again. Preserves errno. false: there are none.
bool close_idle_engine_fds() {
  const int before = errno;
  const EngineGuard inside;
  std::size_t closed = 0;
  if (inside)
    (void)run_isolated_step([&] {
      closed = close_idle_fds();
      return 0;
    });
  errno = before;
  return closed > 0;
}

}  // namespace

int open_at(int directory, const char* path, int flags, mode_t mode) {
  ::pthread_testcancel();  // a container may be made without a further cancellation point
  bool may_make_room = true;
  for (int tries_left = max_moves;; --tries_left) {
    bool has_moved = false;
    const int fd = open_once(directory, path, flags, mode, has_moved);
    if (fd < 0 && errno == EMFILE && std::exchange(may_make_room, false) && close_idle_engine_fds()) continue;
    if (fd >= 0) opened_to_write(fd, flags);
    if (fd >= 0 || !has_moved || tries_left == 0) return fd;
  }
}

}  // namespace iosig::preload

using namespace iosig::preload;

namespace {

mode_t mode_of(int flags, va_list rest) { return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0; }

}  // namespace

int hook::open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_at(AT_FDCWD, path, flags, mode);
}
int hook::openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_at(directory, path, flags, mode);
}
int hook::creat(const char* path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
// The checked variants that _FORTIFY_SOURCE calls.
int hook::__open_2(const char* path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int hook::__openat_2(int directory, const char* path, int flags) { return open_at(directory, path, flags, 0); }
