// The implementation of ::open, ::pwrite and similar calls inside this library. The linker option --wrap
// (CMakeLists.txt) redirects the engine's calls of intercepted names to the functions here, which have the prefix
// `__wrap_`.
//
// Most are made from the rows of hooks/calls.txt with `engine=kernel`, which call the system directly (they are no
// cancellation points, and no other preloaded library sees them), and with `engine=next`. Here are those with
// `engine=own`. Descriptors that the engine keeps get large numbers, so the program's descriptors have the numbers that
// they would have without this library.

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>

#include "preload/engine/engine_fds.h"
#include "preload/hooks/real.h"
#include "preload/prefetch/reads.h"

namespace iosig::preload {

constinit thread_local bool has_own_descriptors __attribute__((tls_model("initial-exec"))) = false;

namespace {

constexpr int usual_least = 700;  ///< larger numbers would make each fork copy a large descriptor table

long sys_fcntl(int fd, int command, long argument) { return ::syscall(SYS_fcntl, fd, command, argument); }

}  // namespace

int min_engine_fd() {
  static const int least = [] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
    return std::clamp(static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 20) / 2), 10, usual_least);
  }();
  return least;
}

int duplicate_for_engine(int fd) {
  const long made = sys_fcntl(fd, F_DUPFD_CLOEXEC, min_engine_fd());
  if (made >= 0 || errno != EINVAL) return static_cast<int>(made);
  rlimit limit{};  // has become less than that
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  return static_cast<int>(sys_fcntl(fd, F_DUPFD_CLOEXEC, static_cast<long>(limit.rlim_cur / 2)));
}

int keep_for_engine(int fd) {
  if (fd < 0 || has_own_descriptors) return fd;
  const int errno_before = errno;
  const int moved = duplicate_for_engine(fd);
  errno = errno_before;
  if (moved >= 0) {
    ::syscall(SYS_close, fd);
    fd = moved;
  }
  engine_fds.add(fd);
  return fd;
}

}  // namespace iosig::preload

using iosig::preload::engine_fds;
using iosig::preload::keep_for_engine;
using iosig::preload::real;
namespace prefetch = iosig::preload::prefetch;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
extern "C" {

#include "engine.inc"

int __wrap_openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  return keep_for_engine(static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode)));
}
int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  return keep_for_engine(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode)));
}
int __wrap_close(int fd) {
  prefetch::engine_closes(fd);
  if (!iosig::preload::has_own_descriptors) engine_fds.remove(fd);
  return static_cast<int>(::syscall(SYS_close, fd));
}
int __wrap_closedir(DIR* directory) {
  engine_fds.remove(::dirfd(directory));
  return real().closedir(directory);
}
ssize_t __wrap_pread(int fd, void* bytes, size_t count, off_t offset) {
  return prefetch::engine_reads(fd, offset, static_cast<std::int64_t>(count),
                                [&] { return ::syscall(SYS_pread64, fd, bytes, count, offset); });
}
ssize_t __wrap_preadv(int fd, const iovec* parts, int count, off_t offset) {
  // The last argument is for 32-bit systems only.
  return prefetch::engine_reads(fd, offset, prefetch::unknown,
                                [&] { return ::syscall(SYS_preadv, fd, parts, count, offset, 0); });
}
int __wrap_fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
int __wrap_ioctl(int fd, unsigned long request, void* argument) { return real().ioctl(fd, request, argument); }
int __wrap_fprintf(FILE* stream, const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  const int done = real().vfprintf(stream, format, rest);
  va_end(rest);
  return done;
}
void __wrap__exit(int status) {
  for (;;) (void)::syscall(SYS_exit_group, status);
}
/// Reads six arguments, as libc's own does, whether or not the caller passed them.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
  std::va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& each : a) each = va_arg(rest, long);
  va_end(rest);
  return real().syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Calls that are another call with fewer arguments.
int __wrap_fstat(int fd, struct stat* status) { return __wrap_fstatat(fd, "", status, AT_EMPTY_PATH); }
int __wrap_stat(const char* path, struct stat* status) { return __wrap_fstatat(AT_FDCWD, path, status, 0); }
int __wrap_lstat(const char* path, struct stat* status) {
  return __wrap_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int __wrap_access(const char* path, int mode) { return __wrap_faccessat(AT_FDCWD, path, mode, 0); }
int __wrap_chmod(const char* path, mode_t mode) { return __wrap_fchmodat(AT_FDCWD, path, mode, 0); }
int __wrap_unlink(const char* path) { return __wrap_unlinkat(AT_FDCWD, path, 0); }
int __wrap_rename(const char* from, const char* to) { return __wrap_renameat(AT_FDCWD, from, AT_FDCWD, to); }
int __wrap_link(const char* from, const char* to) { return __wrap_linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
int __wrap_symlink(const char* to, const char* path) { return __wrap_symlinkat(to, AT_FDCWD, path); }
int __wrap_mkdir(const char* path, mode_t mode) { return __wrap_mkdirat(AT_FDCWD, path, mode); }

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
