// The next definitions of the functions that this library intercepts: those of libc, or of another library that is
// preloaded after this one.
//
// In this library the plain names (::open, ::pwrite) bypass the hooks and these definitions, and go directly to the
// system (engine_calls.cpp). The engine's own calls are therefore invisible to other preloaded libraries, are no
// cancellation points, and are never intercepted again. **Except in the source that defines the hook: there the plain
// name is the hook itself.** Other sources call a hook by its name in program.h.
#pragma once

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#include <cstdint>
#include <cstdio>

namespace iosig::preload {

/// One pointer per function, with the function's name.
struct Real {
  int (*openat)(int, const char*, int, ...);
  int (*open)(const char*, int, ...);
  ssize_t (*read)(int, void*, size_t);
  ssize_t (*write)(int, const void*, size_t);
  ssize_t (*pread)(int, void*, size_t, off_t);
  ssize_t (*pwrite)(int, const void*, size_t, off_t);
  ssize_t (*readv)(int, const iovec*, int);
  ssize_t (*writev)(int, const iovec*, int);
  ssize_t (*preadv)(int, const iovec*, int, off_t);
  ssize_t (*pwritev)(int, const iovec*, int, off_t);
  ssize_t (*preadv2)(int, const iovec*, int, off_t, int);
  ssize_t (*pwritev2)(int, const iovec*, int, off_t, int);
  off_t (*lseek)(int, off_t, int);
  int (*close)(int);
  int (*close_range)(unsigned, unsigned, int);
  int (*dup)(int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*fcntl)(int, int, ...);
  int (*ioctl)(int, unsigned long, ...);
  int (*flock)(int, int);
  int (*fsync)(int);
  int (*fdatasync)(int);
  int (*syncfs)(int);
  int (*sync_file_range)(int, off_t, off_t, unsigned);
  int (*ftruncate)(int, off_t);
  int (*truncate)(const char*, off_t);
  int (*fallocate)(int, int, off_t, off_t);
  int (*posix_fallocate)(int, off_t, off_t);
  int (*posix_fadvise)(int, off_t, off_t, int);
  ssize_t (*readahead)(int, off_t, size_t);
  int (*fstatat)(int, const char*, struct stat*, int);
  int (*fstat)(int, struct stat*);
  long (*syscall)(long, ...);
  int (*statx)(int, const char*, int, unsigned, struct statx*);
  int (*fstatfs)(int, struct statfs*);
  int (*fstatvfs)(int, struct statvfs*);
  int (*faccessat)(int, const char*, int, int);
  int (*fchmod)(int, mode_t);
  int (*fchmodat)(int, const char*, mode_t, int);
  int (*fchown)(int, uid_t, gid_t);
  int (*fchownat)(int, const char*, uid_t, gid_t, int);
  int (*utimensat)(int, const char*, const timespec*, int);
  int (*futimens)(int, const timespec*);
  int (*unlinkat)(int, const char*, int);
  int (*remove)(const char*);
  int (*rmdir)(const char*);
  int (*renameat2)(int, const char*, int, const char*, unsigned);
  int (*renameat)(int, const char*, int, const char*);
  int (*linkat)(int, const char*, int, const char*, int);
  int (*mkdirat)(int, const char*, mode_t);
  int (*mknodat)(int, const char*, mode_t, dev_t);
  int (*mkfifoat)(int, const char*, mode_t);
  int (*symlinkat)(const char*, int, const char*);
  int (*chdir)(const char*);
  DIR* (*opendir)(const char*);
  DIR* (*fdopendir)(int);
  dirent* (*readdir)(DIR*);
  int (*scandirat)(int, const char*, dirent***, int (*)(const dirent*), int (*)(const dirent**, const dirent**));
  int (*inotify_add_watch)(int, const char*, std::uint32_t);
  int (*closedir)(DIR*);
  int (*nftw)(const char*, __nftw_func_t, int, int);
  FTSENT* (*fts_read)(FTS*);
  FTSENT* (*fts_children)(FTS*, int);
  int (*glob)(const char*, int, int (*)(const char*, int), glob_t*);
  int (*daemon)(int, int);
  int (*login_tty)(int);
  pid_t (*forkpty)(int*, char*, const termios*, const winsize*);
  void* (*mmap)(void*, size_t, int, int, int, off_t);
  ssize_t (*sendfile)(int, int, off_t*, size_t);
  ssize_t (*copy_file_range)(int, off64_t*, int, off64_t*, size_t, unsigned);
  ssize_t (*splice)(int, off64_t*, int, off64_t*, size_t, unsigned);
  int (*aio_read)(aiocb*);
  int (*aio_write)(aiocb*);
  int (*aio_fsync)(int, aiocb*);
  int (*aio_cancel)(int, aiocb*);
  int (*lio_listio)(int, aiocb* const*, int, sigevent*);
  int (*setrlimit)(__rlimit_resource_t, const rlimit*);
  int (*prlimit)(pid_t, __rlimit_resource, const rlimit*, rlimit*);
  int (*setxattr)(const char*, const char*, const void*, size_t, int);
  int (*lsetxattr)(const char*, const char*, const void*, size_t, int);
  int (*fsetxattr)(int, const char*, const void*, size_t, int);
  ssize_t (*getxattr)(const char*, const char*, void*, size_t);
  ssize_t (*lgetxattr)(const char*, const char*, void*, size_t);
  ssize_t (*fgetxattr)(int, const char*, void*, size_t);
  ssize_t (*listxattr)(const char*, char*, size_t);
  ssize_t (*llistxattr)(const char*, char*, size_t);
  ssize_t (*flistxattr)(int, char*, size_t);
  int (*removexattr)(const char*, const char*);
  int (*lremovexattr)(const char*, const char*);
  int (*fremovexattr)(int, const char*);
  int (*execve)(const char*, char* const*, char* const*);
  int (*execvpe)(const char*, char* const*, char* const*);
  int (*fexecve)(int, char* const*, char* const*);
  FILE* (*fopen)(const char*, const char*);
  FILE* (*freopen)(const char*, const char*, FILE*);
  FILE* (*fdopen)(int, const char*);
};

/// Looks the functions up at the first call, which may happen before this library's constructors run.
[[nodiscard]] const Real& real();

}  // namespace iosig::preload
