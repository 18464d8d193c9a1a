// Runs the library's code in a thread of the host program without side effects on the host's stack, signals,
// cancellation state, errno and memory.
#pragma once

#include <memory>

#include "iosig/base/errno_kept.h"

namespace iosig::runtime {

using iosig::ErrnoKept;

/// Runs `step(argument)` on a separate stack, because the thread's own may be tiny (a coroutine, a signal handler). All
/// signals are blocked and cancellation is disabled meanwhile; memory comes from memory.h. Safe wherever the host may
/// open a file, including signal handlers. Returns false if the step did not run, because the thread runs isolated
/// already or memory is short, or if it ran out of memory and was abandoned.
[[nodiscard]] bool run_isolated(void (*step)(void*), void* argument) noexcept;

template <class Step>
[[nodiscard]] bool run_isolated(Step step) noexcept {
  return run_isolated([](void* erased) { (*static_cast<Step*>(erased))(); }, std::addressof(step));
}

/// The library's state of each thread.
struct ThreadState {
  bool inside = false;  ///< the thread is in run_isolated()
  char last_error[1024] = {};
};
/// Returns the state of this thread; null if there is no memory for it.
[[nodiscard]] ThreadState* thread_state() noexcept;

}  // namespace iosig::runtime
