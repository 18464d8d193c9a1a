// Keeps the host from cancelling a thread (pthread_cancel) in the library's code.
//
// A cancelled thread's stack is unwound by the C library, with libgcc_s. This library brings an unwinder of its own,
// which does not know libgcc_s's data: a destructor that has to run on the way aborts the program. The same is true of
// a C++ exception that the program throws through a function of this library. Hence the rule: while a call that is a
// cancellation point runs, or a function of the program, no object with a destructor is alive below it, unless
// cancellation is off. A library that needed the program's libgcc_s instead would load it into every program, and not
// start where there is none.
#pragma once

#include <pthread.h>
#include <sys/single_threaded.h>

#include <atomic>

namespace iosig::runtime {

/// Whether the program has called pthread_cancel(3). Set by the library that intercepts it.
inline constinit std::atomic<bool> cancels_threads{false};

/// Whether the calling thread may be cancelled now: by another thread, or because it has cancelled itself.
[[nodiscard]] inline bool may_be_cancelled() {
  return __libc_single_threaded == 0 || cancels_threads.load(std::memory_order_relaxed);
}

class CancellationOff {
 public:
  CancellationOff() : CancellationOff(true) {}
  /// Does nothing if it is not needed: it takes some 20 ns.
  explicit CancellationOff(bool is_needed) {
    if (is_needed) (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
  }
  CancellationOff(const CancellationOff&) = delete;
  CancellationOff& operator=(const CancellationOff&) = delete;
  ~CancellationOff() {
    if (before_ != PTHREAD_CANCEL_DISABLE) (void)::pthread_setcancelstate(before_, nullptr);
  }
  /// The state of the thread before; "disabled" if nothing was done.
  [[nodiscard]] int before() const { return before_; }

 private:
  int before_ = PTHREAD_CANCEL_DISABLE;
};

}  // namespace iosig::runtime
