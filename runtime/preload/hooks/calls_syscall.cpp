// syscall(2): libuv (Node.js) and other runtimes make some calls by number, because an older libc has no function for
// them. Each of these goes to this library's function of the same name; all other numbers go to the kernel.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <concepts>
#include <cstdarg>

#include "preload/hooks/real.h"

// The linker gives these names to this library's functions: see engine_calls.cpp.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" {
extern decltype(::openat) __real_openat;
extern decltype(::close) __real_close;
extern decltype(::read) __real_read;
extern decltype(::write) __real_write;
extern decltype(::pread) __real_pread;
extern decltype(::pwrite) __real_pwrite;
extern decltype(::readv) __real_readv;
extern decltype(::writev) __real_writev;
extern decltype(::lseek) __real_lseek;
extern decltype(::ftruncate) __real_ftruncate;
extern decltype(::fallocate) __real_fallocate;
extern decltype(::fsync) __real_fsync;
extern decltype(::fdatasync) __real_fdatasync;
extern decltype(::copy_file_range) __real_copy_file_range;
extern decltype(::fstat) __real_fstat;
extern decltype(::fstatat) __real_fstatat;
extern decltype(::statx) __real_statx;
extern decltype(::faccessat) __real_faccessat;
extern decltype(::unlinkat) __real_unlinkat;
extern decltype(::renameat2) __real_renameat2;
}
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

}  // namespace

extern "C" {

long syscall(long number, ...) noexcept {
  std::va_list rest;
  va_start(rest, number);
  Argument a[6];
  for (Argument& each : a) each.value = va_arg(rest, long);  // arguments that the caller did not pass are not used
  va_end(rest);
  switch (number) {
    case SYS_openat: return __real_openat(a[0], a[1], a[2], static_cast<mode_t>(a[3]));
    case SYS_close: return __real_close(a[0]);
    case SYS_read: return __real_read(a[0], a[1], a[2]);
    case SYS_write: return __real_write(a[0], a[1], a[2]);
    case SYS_pread64: return __real_pread(a[0], a[1], a[2], a[3]);
    case SYS_pwrite64: return __real_pwrite(a[0], a[1], a[2], a[3]);
    case SYS_readv: return __real_readv(a[0], a[1], a[2]);
    case SYS_writev: return __real_writev(a[0], a[1], a[2]);
    case SYS_lseek: return __real_lseek(a[0], a[1], a[2]);
    case SYS_ftruncate: return __real_ftruncate(a[0], a[1]);
    case SYS_fallocate: return __real_fallocate(a[0], a[1], a[2], a[3]);
    case SYS_fsync: return __real_fsync(a[0]);
    case SYS_fdatasync: return __real_fdatasync(a[0]);
    case SYS_copy_file_range: return __real_copy_file_range(a[0], a[1], a[2], a[3], a[4], a[5]);
    case SYS_fstat: return __real_fstat(a[0], a[1]);
    case SYS_newfstatat: return __real_fstatat(a[0], a[1], a[2], a[3]);
    case SYS_statx: return __real_statx(a[0], a[1], a[2], a[3], a[4]);
    case SYS_faccessat: return __real_faccessat(a[0], a[1], a[2], 0);
    case SYS_unlinkat: return __real_unlinkat(a[0], a[1], a[2]);
    case SYS_renameat2: return __real_renameat2(a[0], a[1], a[2], a[3], a[4]);
    default:
      return iosig::preload::real().syscall(number, a[0].value, a[1].value, a[2].value, a[3].value, a[4].value,
                                            a[5].value);
  }
}

}  // extern "C"
