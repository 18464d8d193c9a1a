// syscall(2): libuv (Node.js) and other runtimes make some calls by number, because an older libc has no function for
// them. Each of these goes to this library's function of the same name; all other numbers go to the kernel.

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <concepts>
#include <cstdarg>
#include <cstdio>

#include "preload/files/open_file.h"
#include "preload/hooks/real.h"

// Three names for one call: real().dup2 is the next library's or libc's, dup2() inside this library the engine's
// (engine_calls.cpp), and __real_dup2() this library's own, which programs call. The linker's option --wrap gives the
// last two their names. NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
#define IOSIG_OWN(name) extern decltype(::name) __real_##name
extern "C" {
IOSIG_OWN(access);
IOSIG_OWN(close);
IOSIG_OWN(close_range);
IOSIG_OWN(copy_file_range);
IOSIG_OWN(dup);
IOSIG_OWN(dup2);
IOSIG_OWN(dup3);
IOSIG_OWN(faccessat);
IOSIG_OWN(fallocate);
IOSIG_OWN(fchmod);
IOSIG_OWN(fchown);
IOSIG_OWN(fcntl);
IOSIG_OWN(fdatasync);
IOSIG_OWN(flock);
IOSIG_OWN(fstat);
IOSIG_OWN(fstatat);
IOSIG_OWN(fsync);
IOSIG_OWN(ftruncate);
IOSIG_OWN(futimens);
IOSIG_OWN(linkat);
IOSIG_OWN(lseek);
IOSIG_OWN(lstat);
IOSIG_OWN(mmap);
IOSIG_OWN(open);
IOSIG_OWN(openat);
IOSIG_OWN(pread);
IOSIG_OWN(preadv);
IOSIG_OWN(preadv2);
IOSIG_OWN(pwrite);
IOSIG_OWN(pwritev);
IOSIG_OWN(pwritev2);
IOSIG_OWN(read);
IOSIG_OWN(readv);
IOSIG_OWN(rename);
IOSIG_OWN(renameat);
IOSIG_OWN(renameat2);
IOSIG_OWN(rmdir);
IOSIG_OWN(sendfile);
IOSIG_OWN(stat);
IOSIG_OWN(statx);
IOSIG_OWN(truncate);
IOSIG_OWN(unlink);
IOSIG_OWN(unlinkat);
IOSIG_OWN(utimensat);
IOSIG_OWN(write);
IOSIG_OWN(writev);
}
#undef IOSIG_OWN
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

namespace {

/// An argument of a system call, as the type that a function takes.
struct Argument {
  long value;
  template <class Number>
  requires std::integral<Number>
  operator Number() const {  // NOLINT(google-explicit-constructor): each call converts each argument
    return static_cast<Number>(value);
  }
  template <class Pointee>
  operator Pointee*() const {                  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<Pointee*>(value);  // NOLINT(performance-no-int-to-ptr): as the kernel takes it
  }
};

/// Set while a function of this library makes the call. For some calls that function calls the next library's function,
/// which may be implemented by syscall(): that call then goes to the kernel.
constinit thread_local bool is_in_call __attribute__((tls_model("initial-exec"))) = false;

/// Whether the call may concern a container: a call on descriptors if one of them is a container, or if the program
/// would close a descriptor of this library; a call on paths always. All others must go straight to the kernel and not
/// to the function of the same name: UCX, tcmalloc and others replace mmap() by a function that calls syscall().
bool may_concern_container(long number, const Argument (&a)[6]) {
  using iosig::preload::engine_fds, iosig::preload::is_ours;
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_lseek:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_fstat:
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_flock: return is_ours(a[0]);
    case SYS_sendfile: return is_ours(a[0]) || is_ours(a[1]);
    case SYS_copy_file_range: return is_ours(a[0]) || is_ours(a[2]);
    case SYS_mmap: return is_ours(a[4]);
    case SYS_fcntl:
    case SYS_dup: return !is_in_call && is_ours(a[0]);
    case SYS_close: return !is_in_call && (is_ours(a[0]) || engine_fds.has(a[0]));
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3: return !is_in_call && (is_ours(a[0]) || is_ours(a[1]) || engine_fds.has(a[1]));
    case SYS_utimensat:  // without a path it is futimens()
      return a[1].value == 0 ? is_ours(a[0]) : !is_in_call;
    default: return !is_in_call;
  }
}

/// Makes the call if it is one of those that this library intercepts. Sets `is_ours` to false and does nothing if not.
long call_by_number(long number, const Argument (&a)[6], bool& is_ours) {
  switch (number) {
    // Descriptors. All calls that give a number to another file must be here.
    case SYS_openat: return __real_openat(a[0], a[1], a[2], static_cast<mode_t>(a[3]));
    case SYS_close: return __real_close(a[0]);
    case SYS_close_range: return __real_close_range(a[0], a[1], a[2]);
    case SYS_dup: return __real_dup(a[0]);
    case SYS_dup3: return __real_dup3(a[0], a[1], a[2]);
    case SYS_fcntl: return __real_fcntl(a[0], a[1], a[2].value);
    case SYS_flock: return __real_flock(a[0], a[1]);
    // Data
    case SYS_read: return __real_read(a[0], a[1], a[2]);
    case SYS_write: return __real_write(a[0], a[1], a[2]);
    case SYS_pread64: return __real_pread(a[0], a[1], a[2], a[3]);
    case SYS_pwrite64: return __real_pwrite(a[0], a[1], a[2], a[3]);
    case SYS_readv: return __real_readv(a[0], a[1], a[2]);
    case SYS_writev: return __real_writev(a[0], a[1], a[2]);
    case SYS_preadv: return __real_preadv(a[0], a[1], a[2], a[3]);
    case SYS_pwritev: return __real_pwritev(a[0], a[1], a[2], a[3]);
    case SYS_preadv2: return __real_preadv2(a[0], a[1], a[2], a[3], a[5]);
    case SYS_pwritev2: return __real_pwritev2(a[0], a[1], a[2], a[3], a[5]);
    case SYS_lseek: return __real_lseek(a[0], a[1], a[2]);
    case SYS_ftruncate: return __real_ftruncate(a[0], a[1]);
    case SYS_truncate: return __real_truncate(a[0], a[1]);
    case SYS_fallocate: return __real_fallocate(a[0], a[1], a[2], a[3]);
    case SYS_fsync: return __real_fsync(a[0]);
    case SYS_fdatasync: return __real_fdatasync(a[0]);
    case SYS_copy_file_range: return __real_copy_file_range(a[0], a[1], a[2], a[3], a[4], a[5]);
    case SYS_sendfile: return __real_sendfile(a[0], a[1], a[2], a[3]);
    case SYS_mmap: return reinterpret_cast<long>(__real_mmap(a[0], a[1], a[2], a[3], a[4], a[5]));
    // Status
    case SYS_fstat: return __real_fstat(a[0], a[1]);
    case SYS_newfstatat: return __real_fstatat(a[0], a[1], a[2], a[3]);
    case SYS_statx: return __real_statx(a[0], a[1], a[2], a[3], a[4]);
    case SYS_faccessat: return __real_faccessat(a[0], a[1], a[2], 0);
    case SYS_fchmod: return __real_fchmod(a[0], a[1]);
    case SYS_fchown: return __real_fchown(a[0], a[1], a[2]);
    case SYS_utimensat: return a[1].value == 0 ? __real_futimens(a[0], a[2]) : __real_utimensat(a[0], a[1], a[2], a[3]);
    // Names
    case SYS_unlinkat: return __real_unlinkat(a[0], a[1], a[2]);
    case SYS_renameat2: return __real_renameat2(a[0], a[1], a[2], a[3], a[4]);
    case SYS_linkat: return __real_linkat(a[0], a[1], a[2], a[3], a[4]);
#ifdef SYS_open  // newer architectures have only the calls that take a directory
    case SYS_open: return __real_open(a[0], a[1], static_cast<mode_t>(a[2]));
    case SYS_creat: return __real_open(a[0], O_CREAT | O_WRONLY | O_TRUNC, static_cast<mode_t>(a[1]));
    case SYS_dup2: return __real_dup2(a[0], a[1]);
    case SYS_stat: return __real_stat(a[0], a[1]);
    case SYS_lstat: return __real_lstat(a[0], a[1]);
    case SYS_access: return __real_access(a[0], a[1]);
    case SYS_unlink: return __real_unlink(a[0]);
    case SYS_rename: return __real_rename(a[0], a[1]);
    case SYS_renameat: return __real_renameat(a[0], a[1], a[2], a[3]);
    case SYS_rmdir: return __real_rmdir(a[0]);
#endif
    default: is_ours = false; return -1;
  }
}

}  // namespace

// Declared anew, without the `noexcept` of glibc's declaration: a thread that is cancelled asynchronously in the system
// call unwinds through this frame.
extern "C" long by_number(long number, ...) __asm__("syscall");

/// Reads six arguments, as libc's own does. Those that the caller did not pass are not used.
__attribute__((no_sanitize("address"))) long by_number(long number, ...) {
  std::va_list rest;
  va_start(rest, number);
  Argument a[6];
  for (Argument& each : a) each.value = va_arg(rest, long);
  va_end(rest);
  if (may_concern_container(number, a)) {
    const iosig::preload::ReentrancyGuard inside(is_in_call);
    // syscall() is not a cancellation point, the functions that stand in for it are.
    int state = PTHREAD_CANCEL_ENABLE;
    (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    bool is_ours = true;
    const long answer = call_by_number(number, a, is_ours);
    if (state != PTHREAD_CANCEL_DISABLE) (void)::pthread_setcancelstate(state, nullptr);
    if (is_ours) return answer;
  }
  return iosig::preload::real().syscall(number, a[0].value, a[1].value, a[2].value, a[3].value, a[4].value, a[5].value);
}
