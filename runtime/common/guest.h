// How the library behaves in a thread of its host: as a guest that leaves everything as it was.
#pragma once

#include <cerrno>
#include <memory>

namespace iosig::runtime {

struct ErrnoKept {
  const int before = errno;
  ~ErrnoKept() { errno = before; }
};

/// Runs `step(argument)` on a stack of its own, so that it needs no room on the thread's (a tiny one, a coroutine's, a
/// signal handler's), with all signals held and cancellation off; memory comes from memory.h. So it is safe wherever
/// the host may open a file, signal handlers included. False: it was not run, as the thread is inside one already or
/// there is no memory, or it ran out of memory and was given up.
[[nodiscard]] bool as_guest(void (*step)(void*), void* argument) noexcept;

template <class Step>
[[nodiscard]] bool as_guest(Step step) noexcept {
  return as_guest([](void* erased) { (*static_cast<Step*>(erased))(); }, std::addressof(step));
}

/// What the library keeps for each thread; nothing when there is no memory.
struct ThreadState {
  bool inside = false;  ///< as_guest is at work
  char last_error[1024] = {};
};
[[nodiscard]] ThreadState* thread_state() noexcept;

}  // namespace iosig::runtime
