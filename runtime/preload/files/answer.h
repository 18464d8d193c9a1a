// How a call of the program is answered: -1 with errno, or a value and errno as it was.
#pragma once

#include <cerrno>
#include <cstdint>

#include "preload/files/open_file.h"

namespace iosig::preload {

/// `value`: what the call gives, or -errno.
[[nodiscard]] inline std::int64_t answer(std::int64_t value, int errno_before) {
  errno = value < 0 ? static_cast<int>(-value) : errno_before;
  return value < 0 ? -1 : value;
}

/// Of a call that failed: another thread has made the container an ordinary file meanwhile, which shall be asked
/// instead.
[[nodiscard]] inline bool is_ordinary_now(int fd) { return errno == EBADF && !is_ours(fd); }
/// As the kernel does when a file would grow beyond RLIMIT_FSIZE; elsewhere EFBIG comes alone.
void signal_size_limit();

/// Answers with call(OpenFile&), which gives a value or -errno. A signal handler that came in between a call of its own
/// thread gets EDEADLK; ENOMEM: the library ran out of memory.
template <class Call>
[[nodiscard]] std::int64_t with_open_file(int fd, Call call) {
  const int before = errno;
  std::int64_t value = -EDEADLK;
  {
    const ReentrancyGuard inside(is_inside);
    if (inside) {
      const InUse file(fd);
      try {
        value = file ? call(*file) : -EBADF;
      } catch (...) {  // out of memory
        value = -ENOMEM;
      }
    }
  }
  if (value == -EFBIG) [[unlikely]]
    signal_size_limit();
  return answer(value, before);
}

/// The same for what is long; the container is open then.
template <class Call>
[[nodiscard]] int with_ready_file(int fd, Call call) {
  return static_cast<int>(with_open_file(fd, [&](OpenFile& file) -> std::int64_t {
    if (const int failure = make_ready(file); failure != 0) return -failure;
    std::int64_t value = 0;
    const int failure = run_isolated_step([&] {
      value = call(file);
      return 0;
    });
    return failure != 0 ? -failure : value;
  }));
}

}  // namespace iosig::preload
