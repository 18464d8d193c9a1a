// The behaviours of read(2), write(2), pread(2) and pwrite(2), for the recorder to contain: rows of calls.txt with
// `inline`. hook::read() and so on (calls_data.cpp) are the same for everything else.
//
// After a system call the processor predicts returns wrongly, so each function between the program and the kernel that
// has to return costs some 8 ns a call: these make system calls themselves where they may.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <span>

#include "host/cancellation_off.h"
#include "preload/files/data.h"
#include "preload/files/open_file.h"
#include "preload/hooks/full.h"
#include "preload/hooks/real.h"

namespace iosig::preload::hook_inline {

/// Whether `offset` is valid as an explicit offset; sets errno if not.
[[nodiscard]] inline bool is_place(off_t offset) {
  if (offset < 0) errno = EINVAL;
  return offset >= 0;
}

/// Makes the call by the next definition; or by the system call itself, if the next definition is the C library's,
/// which would do nothing else: this thread cannot be cancelled in it.
template <long number, class Next, class... Arguments>
[[gnu::always_inline]] inline ssize_t make(const Next& next, Arguments... arguments) {
#if defined(__x86_64__)
  if (next.is_system_call() && !runtime::may_be_cancelled()) [[likely]] {
    const auto system_call = [](int fd, const void* bytes, size_t count, off_t offset = 0) {
      long result = number;
      register long fourth __asm__("r10") = offset;
      __asm__ volatile("syscall"
                       : "+a"(result)
                       : "D"(static_cast<long>(fd)), "S"(bytes), "d"(count), "r"(fourth)
                       : "rcx", "r11", "memory");
      return result;
    };
    const long result = system_call(arguments...);
    if (result >= 0 || result < -4095) [[likely]]
      return result;
    if (result == -EBADF) return next(arguments...);  // it may have been patched since it was first called
    errno = static_cast<int>(-result);
    return -1;
  }
#endif
  return next(arguments...);
}

inline ssize_t read(int fd, void* bytes, size_t count) {
  if (!is_ours(fd)) [[likely]]
    return make<SYS_read>(real().read, fd, bytes, count);
  return read_from(fd, {static_cast<std::byte*>(bytes), count}, at_file_offset);
}
inline ssize_t write(int fd, const void* bytes, size_t count) {
  if (is_ours(fd)) [[unlikely]]
    return write_to(fd, {static_cast<const std::byte*>(bytes), count}, at_file_offset);
  const ssize_t done = make<SYS_write>(real().write, fd, bytes, count);
  if (done == static_cast<ssize_t>(count)) [[likely]]
    return done;
  return write_rest(fd, bytes, count, at_own_offset, done);
}
inline ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  if (!is_ours(fd)) [[likely]]
    return make<SYS_pread64>(real().pread, fd, bytes, count, offset);
  return is_place(offset) ? read_from(fd, {static_cast<std::byte*>(bytes), count}, offset) : -1;
}
inline ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (is_ours(fd)) [[unlikely]]
    return is_place(offset) ? write_to(fd, {static_cast<const std::byte*>(bytes), count}, offset) : -1;
  const ssize_t done = make<SYS_pwrite64>(real().pwrite, fd, bytes, count, offset);
  if (done == static_cast<ssize_t>(count)) [[likely]]
    return done;
  return offset < 0 ? done : write_rest(fd, bytes, count, offset, done);
}

}  // namespace iosig::preload::hook_inline
