// How an intercepted call returns to the program: with -1 and errno, or with a value and an unchanged errno.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <cstdint>

#include "preload/files/open_file.h"

namespace iosig::preload {

/// Converts `value`, a result or -errno, to the return value of the call and sets errno.
[[nodiscard]] inline std::int64_t answer(std::int64_t value, int errno_before) {
  errno = value < 0 ? static_cast<int>(-value) : errno_before;
  return value < 0 ? -1 : value;
}

/// Whether a call failed because another thread has converted the container to an ordinary file in the meantime. The
/// caller then repeats the call on the ordinary file.
[[nodiscard]] inline bool is_ordinary_now(int fd) { return errno == EBADF && !is_ours(fd); }

/// Raises SIGXFSZ if RLIMIT_FSIZE is set, as the kernel does when a write would exceed it. Without that limit EFBIG
/// comes without a signal.
void signal_size_limit();

/// Returns the result of call(OpenFile&), which returns a value or -errno. Fails with EDEADLK in a signal handler that
/// interrupted a call of the same thread in the engine, and with ENOMEM if the library runs out of memory.
template <class Call>
[[nodiscard]] std::int64_t with_open_file(int fd, Call call) {
  const int before = errno;
  std::int64_t value = -EDEADLK;
  {
    const EngineGuard inside;
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

/// The same for a call that is a cancellation point. A thread that is to be cancelled ends before anything is done.
template <class Call>
[[nodiscard]] std::int64_t with_open_file_or_cancelled(int fd, Call call) {
  ::pthread_testcancel();
  return with_open_file(fd, call);
}

/// The same for long operations: opens the container first and runs `call` isolated.
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
