// Runs the library's work in a thread of the host program without a trace: stack, signals, cancellation, errno and
// memory stay the host's.
#pragma once

#include <cerrno>
#include <memory>

namespace iosig::runtime {

struct ErrnoKept {
  const int before = errno;
  ~ErrnoKept() { errno = before; }
};

/// Runs `step(argument)` on its own stack, because the thread's may be tiny (a coroutine, a signal handler), with all
/// signals blocked and cancellation disabled; memory comes from memory.h. Safe wherever the host may open a file,
/// signal handlers included. Returns false if it did not run, because the thread runs isolated work already or memory
/// is short, or if it ran out of memory and was abandoned.
[[nodiscard]] bool run_isolated(void (*step)(void*), void* argument) noexcept;

template <class Step>
[[nodiscard]] bool run_isolated(Step step) noexcept {
  return run_isolated([](void* erased) { (*static_cast<Step*>(erased))(); }, std::addressof(step));
}

/// What the library keeps for each thread; nothing when there is no memory.
struct ThreadState {
  bool inside = false;  ///< run_isolated is at work
  char last_error[1024] = {};
};
[[nodiscard]] ThreadState* thread_state() noexcept;

}  // namespace iosig::runtime
