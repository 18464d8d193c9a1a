// The implementation of ::open, ::pwrite and similar calls inside this library. The linker option --wrap
// (CMakeLists.txt) redirects the engine's calls of intercepted names to the functions here, which have the prefix
// `__wrap_`.
//
// They call the system directly: they are no cancellation points, and no other preloaded library sees them. Descriptors
// that the engine keeps get large numbers, so the program's descriptors have the numbers that they would have without
// this library.

#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>

#include "preload/engine/engine_fds.h"
#include "preload/hooks/real.h"

namespace iosig::preload {
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

int keep_for_engine(int fd) {
  if (fd < 0) return fd;
  const int errno_before = errno;
  const auto moved = static_cast<int>(sys_fcntl(fd, F_DUPFD_CLOEXEC, min_engine_fd()));
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

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names
extern "C" {

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
int __wrap_open64(const char* path, int flags, ...) __attribute__((alias("__wrap_open")));

int __wrap_close(int fd) {
  engine_fds.remove(fd);
  return static_cast<int>(::syscall(SYS_close, fd));
}

ssize_t __wrap_read(int fd, void* bytes, size_t count) { return ::syscall(SYS_read, fd, bytes, count); }
ssize_t __wrap_write(int fd, const void* bytes, size_t count) { return ::syscall(SYS_write, fd, bytes, count); }
ssize_t __wrap_pread(int fd, void* bytes, size_t count, off_t offset) {
  return ::syscall(SYS_pread64, fd, bytes, count, offset);
}
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  return ::syscall(SYS_pwrite64, fd, bytes, count, offset);
}
ssize_t __wrap_preadv(int fd, const iovec* parts, int count, off_t offset) {
  return ::syscall(SYS_preadv, fd, parts, count, offset, 0);  // the last argument is for 32-bit systems only
}
ssize_t __wrap_writev(int fd, const iovec* parts, int count) { return ::syscall(SYS_writev, fd, parts, count); }
off_t __wrap_lseek(int fd, off_t offset, int whence) { return ::syscall(SYS_lseek, fd, offset, whence); }
int __wrap_fsync(int fd) { return static_cast<int>(::syscall(SYS_fsync, fd)); }
int __wrap_fdatasync(int fd) { return static_cast<int>(::syscall(SYS_fdatasync, fd)); }
int __wrap_ftruncate(int fd, off_t size) { return static_cast<int>(::syscall(SYS_ftruncate, fd, size)); }
int __wrap_flock(int fd, int operation) { return static_cast<int>(::syscall(SYS_flock, fd, operation)); }
int __wrap_fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const long argument = va_arg(rest, long);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}
int __wrap_fcntl64(int fd, int command, ...) __attribute__((alias("__wrap_fcntl")));
[[noreturn]] void __wrap__exit(int status) {
  for (;;) (void)::syscall(SYS_exit_group, status);
}
int __wrap_fstatvfs(int fd, struct statvfs* status) { return real().fstatvfs(fd, status); }
int __wrap_posix_fallocate(int fd, off_t offset, off_t length) { return real().posix_fallocate(fd, offset, length); }

int __wrap_fstatat(int directory, const char* path, struct stat* status, int flags) {
  return static_cast<int>(::syscall(SYS_newfstatat, directory, path, status, flags));
}
int __wrap_fstat(int fd, struct stat* status) { return __wrap_fstatat(fd, "", status, AT_EMPTY_PATH); }
int __wrap_stat(const char* path, struct stat* status) { return __wrap_fstatat(AT_FDCWD, path, status, 0); }
int __wrap_lstat(const char* path, struct stat* status) {
  return __wrap_fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int __wrap_faccessat(int directory, const char* path, int mode, int flags) {
  return real().faccessat(directory, path, mode, flags);
}
int __wrap_access(const char* path, int mode) { return real().faccessat(AT_FDCWD, path, mode, 0); }
int __wrap_fchmodat(int directory, const char* path, mode_t mode, int flags) {
  return real().fchmodat(directory, path, mode, flags);
}
int __wrap_fchmod(int fd, mode_t mode) { return real().fchmod(fd, mode); }
int __wrap_chmod(const char* path, mode_t mode) { return real().fchmodat(AT_FDCWD, path, mode, 0); }
int __wrap_fchown(int fd, uid_t user, gid_t group) { return real().fchown(fd, user, group); }
ssize_t __wrap_getxattr(const char* path, const char* name, void* value, size_t bytes) {
  return real().getxattr(path, name, value, bytes);
}
int __wrap_setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) {
  return real().setxattr(path, name, value, bytes, flags);
}
ssize_t __wrap_fgetxattr(int fd, const char* name, void* value, size_t bytes) {
  return real().fgetxattr(fd, name, value, bytes);
}
int __wrap_fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) {
  return real().fsetxattr(fd, name, value, bytes, flags);
}
ssize_t __wrap_flistxattr(int fd, char* names, size_t bytes) { return real().flistxattr(fd, names, bytes); }
int __wrap_fremovexattr(int fd, const char* name) { return real().fremovexattr(fd, name); }
int __wrap_futimens(int fd, const timespec* times) { return real().futimens(fd, times); }
int __wrap_fchownat(int directory, const char* path, uid_t user, gid_t group, int flags) {
  return real().fchownat(directory, path, user, group, flags);
}
int __wrap_utimensat(int directory, const char* path, const timespec* times, int flags) {
  return real().utimensat(directory, path, times, flags);
}
int __wrap_unlinkat(int directory, const char* path, int flags) { return real().unlinkat(directory, path, flags); }
int __wrap_unlink(const char* path) { return real().unlinkat(AT_FDCWD, path, 0); }
int __wrap_rmdir(const char* path) { return real().rmdir(path); }
int __wrap_remove(const char* path) { return real().remove(path); }
int __wrap_renameat2(int directory, const char* path, int to, const char* name, unsigned flags) {
  return static_cast<int>(::syscall(SYS_renameat2, directory, path, to, name, flags));
}
int __wrap_rename(const char* from, const char* to) { return real().renameat(AT_FDCWD, from, AT_FDCWD, to); }
int __wrap_renameat(int directory, const char* path, int to, const char* name) {
  return real().renameat(directory, path, to, name);
}
int __wrap_linkat(int directory, const char* path, int to, const char* name, int flags) {
  return real().linkat(directory, path, to, name, flags);
}
int __wrap_mkdirat(int directory, const char* path, mode_t mode) { return real().mkdirat(directory, path, mode); }
int __wrap_mkdir(const char* path, mode_t mode) { return real().mkdirat(AT_FDCWD, path, mode); }
int __wrap_symlinkat(const char* to, int directory, const char* path) { return real().symlinkat(to, directory, path); }
int __wrap_symlink(const char* to, const char* path) { return real().symlinkat(to, AT_FDCWD, path); }
/// Reads six arguments, as libc's own does, whether or not the caller passed them.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
  std::va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& each : a) each = va_arg(rest, long);
  va_end(rest);
  return real().syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int __wrap_statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) {
  return real().statx(directory, path, flags, mask, status);
}
int __wrap_chdir(const char* path) { return real().chdir(path); }
int __wrap_truncate(const char* path, off_t size) { return real().truncate(path, size); }
int __wrap_truncate64(const char* path, off_t size) { return real().truncate(path, size); }
DIR* __wrap_opendir(const char* path) { return real().opendir(path); }
DIR* __wrap_fdopendir(int fd) { return real().fdopendir(fd); }
dirent* __wrap_readdir(DIR* directory) { return real().readdir(directory); }
int __wrap_closedir(DIR* directory) {
  engine_fds.remove(::dirfd(directory));
  return real().closedir(directory);
}
// Used by the streams of the C++ runtime only, which this library does not open.
off_t __wrap_lseek64(int fd, off_t offset, int whence) { return __wrap_lseek(fd, offset, whence); }
int __wrap_fstat64(int fd, struct stat* status) { return __wrap_fstat(fd, status); }
int __wrap_ioctl(int fd, unsigned long request, void* argument) { return real().ioctl(fd, request, argument); }
int __wrap_link(const char* from, const char* to) { return real().linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
ssize_t __wrap_sendfile(int to, int from, off_t* offset, size_t count) {
  return real().sendfile(to, from, offset, count);
}
FILE* __wrap_fdopen(int fd, const char* mode) { return real().fdopen(fd, mode); }
FILE* __wrap_fopen64(const char* path, const char* mode) { return real().fopen(path, mode); }
FILE* __wrap_fopen(const char* path, const char* mode) { return real().fopen(path, mode); }  // libstdc++ 14
void* __wrap_mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  return real().mmap(at, length, protection, flags, fd, offset);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
