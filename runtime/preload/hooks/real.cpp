#include "preload/hooks/real.h"

#include <dlfcn.h>

#include <atomic>

namespace iosig::preload {
namespace {

Real found;
std::atomic<bool> is_found{false};

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void find_all() {
  find(found.openat, "openat");
  find(found.open, "open");
  find(found.read, "read");
  find(found.write, "write");
  find(found.pread, "pread");
  find(found.pwrite, "pwrite");
  find(found.readv, "readv");
  find(found.writev, "writev");
  find(found.preadv, "preadv");
  find(found.pwritev, "pwritev");
  find(found.preadv2, "preadv2");
  find(found.pwritev2, "pwritev2");
  find(found.lseek, "lseek");
  find(found.close, "close");
  find(found.close_range, "close_range");
  find(found.dup, "dup");
  find(found.dup2, "dup2");
  find(found.dup3, "dup3");
  find(found.fcntl, "fcntl64");
  find(found.ioctl, "ioctl");
  find(found.flock, "flock");
  find(found.fsync, "fsync");
  find(found.fdatasync, "fdatasync");
  find(found.syncfs, "syncfs");
  find(found.sync_file_range, "sync_file_range");
  find(found.ftruncate, "ftruncate");
  find(found.truncate, "truncate");
  find(found.fallocate, "fallocate");
  find(found.posix_fallocate, "posix_fallocate");
  find(found.posix_fadvise, "posix_fadvise");
  find(found.readahead, "readahead");
  find(found.fstatat, "fstatat");
  find(found.fstat, "fstat");
  find(found.statx, "statx");
  find(found.syscall, "syscall");
  find(found.fstatfs, "fstatfs");
  find(found.fstatvfs, "fstatvfs");
  find(found.faccessat, "faccessat");
  find(found.fchmod, "fchmod");
  find(found.fchmodat, "fchmodat");
  find(found.fchown, "fchown");
  find(found.fchownat, "fchownat");
  find(found.utimensat, "utimensat");
  find(found.futimens, "futimens");
  find(found.unlinkat, "unlinkat");
  find(found.remove, "remove");
  find(found.rmdir, "rmdir");
  find(found.renameat2, "renameat2");
  find(found.renameat, "renameat");
  find(found.linkat, "linkat");
  find(found.mkdirat, "mkdirat");
  find(found.mknodat, "mknodat");
  find(found.mkfifoat, "mkfifoat");
  find(found.symlinkat, "symlinkat");
  find(found.chdir, "chdir");
  find(found.opendir, "opendir");
  find(found.fdopendir, "fdopendir");
  find(found.readdir, "readdir");
  find(found.scandirat, "scandirat");
  find(found.inotify_add_watch, "inotify_add_watch");
  find(found.closedir, "closedir");
  find(found.nftw, "nftw");
  find(found.fts_read, "fts_read");
  find(found.fts_children, "fts_children");
  find(found.glob, "glob");
  find(found.daemon, "daemon");
  find(found.login_tty, "login_tty");
  find(found.forkpty, "forkpty");
  find(found.mmap, "mmap");
  find(found.sendfile, "sendfile");
  find(found.copy_file_range, "copy_file_range");
  find(found.splice, "splice");
  find(found.aio_read, "aio_read");
  find(found.aio_write, "aio_write");
  find(found.aio_fsync, "aio_fsync");
  find(found.aio_cancel, "aio_cancel");
  find(found.lio_listio, "lio_listio");
  find(found.setrlimit, "setrlimit");
  find(found.prlimit, "prlimit");
  find(found.setxattr, "setxattr");
  find(found.lsetxattr, "lsetxattr");
  find(found.fsetxattr, "fsetxattr");
  find(found.getxattr, "getxattr");
  find(found.lgetxattr, "lgetxattr");
  find(found.fgetxattr, "fgetxattr");
  find(found.listxattr, "listxattr");
  find(found.llistxattr, "llistxattr");
  find(found.flistxattr, "flistxattr");
  find(found.removexattr, "removexattr");
  find(found.lremovexattr, "lremovexattr");
  find(found.fremovexattr, "fremovexattr");
  find(found.execve, "execve");
  find(found.execvpe, "execvpe");
  find(found.fexecve, "fexecve");
  find(found.fopen, "fopen");
  find(found.freopen, "freopen");
  find(found.fdopen, "fdopen");
}

}  // namespace

const Real& real() {
  if (!is_found.load(std::memory_order_acquire)) {
    find_all();  // harmless if two threads do it at the same time
    is_found.store(true, std::memory_order_release);
  }
  return found;
}

}  // namespace iosig::preload
