// The initialization of function-local statics, such that a forked child never waits for a thread that it does not
// have.
//
// The compiler calls __cxa_guard_acquire() before it initializes such a variable. In libstdc++ a second thread then
// waits until the first is done. If another thread of the host forks in between, the child inherits the guard "being
// initialized", without the thread that would finish it, and waits forever:
//
//   thread A: open()  -> first call of boot_id(): acquires the guard, reads /proc ...
//   thread B: fork()
//   child:    open()  -> boot_id(): waits for A, which exists only in the parent
//
// The definitions here replace those of libstdc++. They record in the guard at which fork the initialization began. A
// child that finds an older number starts anew, as pthread_once(3) of glibc does. What the other thread had made of the
// object is abandoned; therefore an initializer whose effects must not happen twice (pthread_atfork) belongs into a
// constructor of the library.
#include <cxxabi.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>

// The thread sanitizer has its own definitions.
#if !defined(__SANITIZE_THREAD__)

namespace iosig::runtime {
namespace {

/// The compiler reads the first byte of a guard, which is not 0 once the object is initialized. This file uses the
/// second half, a futex: `unused`, `initialized`, or the number of forks when the initialization began.
static_assert(sizeof(__cxxabiv1::__guard) == 8);
constexpr std::uint32_t unused = 0, initialized = UINT32_MAX;
constinit std::uint32_t forks = 1;  ///< that led to this process, plus one; changes only in a child with one thread

std::uint8_t* first_byte(__cxxabiv1::__guard* guard) { return reinterpret_cast<std::uint8_t*>(guard); }
std::uint32_t* state(__cxxabiv1::__guard* guard) { return reinterpret_cast<std::uint32_t*>(guard) + 1; }

void wait_while(std::uint32_t* state, std::uint32_t value) {
  const int before = errno;
  (void)::syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  errno = before;
}

void set_and_wake(std::uint32_t* state, std::uint32_t value) {
  const int before = errno;
  __atomic_store_n(state, value, __ATOMIC_RELEASE);
  (void)::syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  errno = before;
}

// First of all: later handlers of the fork may already use statics.
__attribute__((constructor(101))) void count_forks() {
  ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

}  // namespace
}  // namespace iosig::runtime

using namespace iosig::runtime;

namespace __cxxabiv1 {
extern "C" {

/// Returns 1 if the caller must initialize the object, 0 if it is initialized.
int __cxa_guard_acquire(__guard* guard) {
  std::uint32_t* const word = state(guard);
  for (;;) {
    std::uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (seen == initialized) return 0;
    if (seen == forks)
      wait_while(word, seen);
    else if (__atomic_compare_exchange_n(word, &seen, forks, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return 1;  // it was unused, or begun by a thread that only a parent has
  }
}

void __cxa_guard_release(__guard* guard) noexcept {
  __atomic_store_n(first_byte(guard), std::uint8_t{1}, __ATOMIC_RELEASE);
  set_and_wake(state(guard), initialized);
}

/// The initializer has thrown: the next caller tries again.
void __cxa_guard_abort(__guard* guard) noexcept { set_and_wake(state(guard), unused); }

}  // extern "C"
}  // namespace __cxxabiv1

#endif
