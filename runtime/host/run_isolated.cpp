#include "host/run_isolated.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <new>

#include "host/cancellation_off.h"
#include "host/memory.h"

namespace iosig::runtime {
namespace {

constexpr std::size_t stack_bytes = 256 << 10, guard_bytes = 64 << 10;

/// Blocks the thread's signals while it lives, because a signal handler of the host could fork, longjmp or open a file
/// during a decision. The thread cannot be cancelled meanwhile. Discards the signals that the library's own writes
/// raise (SIGPIPE on stderr, SIGXFSZ), which would kill the host. SIGSYS stays unblocked: a host that emulates system
/// calls for its seccomp filter also emulates those of the library.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGSYS);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    ::sigpending(&pending_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() {
    sigset_t ours;
    ::sigemptyset(&ours);
    for (const int raised : {SIGPIPE, SIGXFSZ})
      if (::sigismember(&pending_, raised) == 0) ::sigaddset(&ours, raised);
    constexpr timespec at_once{};
    while (::sigtimedwait(&ours, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  const CancellationOff uncancelled_;  // sigtimedwait() is a cancellation point
  sigset_t before_, pending_;
};

/// A stack with a guard area below it. One stack is kept between runs; concurrent threads map more.
class Stack {
 public:
  Stack() : memory_(idle.exchange(nullptr)) {
    if (memory_ != nullptr) return;
    memory_ = ::mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) memory_ = nullptr;
    if (memory_ != nullptr) ::mprotect(memory_, guard_bytes, PROT_NONE);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack() {
    if (void* spare = memory_ == nullptr ? nullptr : idle.exchange(memory_)) ::munmap(spare, guard_bytes + stack_bytes);
  }
  explicit operator bool() const { return memory_ != nullptr; }
  [[nodiscard]] stack_t usable() const {
    return {.ss_sp = static_cast<char*>(memory_) + guard_bytes, .ss_flags = 0, .ss_size = stack_bytes - top_bytes};
  }
  /// Memory above the stack for a `Run`, which is large for the host's stack.
  [[nodiscard]] void* top() const { return static_cast<char*>(memory_) + guard_bytes + stack_bytes - top_bytes; }

  static constexpr std::size_t top_bytes = 4096;

 private:
  static std::atomic<void*> idle;
  void* memory_;
};
std::atomic<void*> Stack::idle{nullptr};

struct Run {
  void (*step)(void*);
  void* argument;
  bool completed = false;
  ucontext_t host{}, isolated{};
};
static_assert(sizeof(Run) <= Stack::top_bytes);

/// makecontext can only pass ints, so the pointer comes in two halves.
void run(unsigned high, unsigned low) {
  auto* own = std::bit_cast<Run*>(static_cast<std::uintptr_t>(high) << 32 | low);
  try {
    own->step(own->argument);
    own->completed = true;
  } catch (...) {  // out of memory
  }
}

pthread_key_t state_key;
bool has_key = false;
pid_t known_pid = 0;

/// Whether this process is a child that was not made by fork(). After _Fork or clone, locks may be held by threads that
/// do not exist in the child; after vfork, the child shares the locks of its parent. Nothing runs isolated in such a
/// child.
bool is_unknown_child() { return ::getpid() != known_pid; }

/// The C library's swapcontext. In a program with AddressSanitizer the name resolves to the sanitizer's interceptor,
/// which warns at every switch. The warning is for instrumented code, and no instrumented code runs on the library's
/// stack.
decltype(&::swapcontext) switch_context = &::swapcontext;

extern "C" __attribute__((weak)) void
__asan_init();  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

__attribute__((constructor(101))) void find_swapcontext() {
  if (__asan_init == nullptr) return;
  void* c_library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (void* found = c_library != nullptr ? ::dlsym(c_library, "swapcontext") : nullptr)
    switch_context = reinterpret_cast<decltype(switch_context)>(found);
}

__attribute__((constructor(101))) void make_key() {
  constexpr auto remember_pid = [] { known_pid = ::getpid(); };
  remember_pid();
  ::pthread_atfork(nullptr, nullptr, remember_pid);
  has_key = ::pthread_key_create(&state_key, [](void* state) {
              const SignalsHeld held;
              delete static_cast<ThreadState*>(state);
            }) == 0;
}

/// Not inlined: getcontext() returns twice for the compiler.
[[gnu::noinline]] bool run_on(const Stack& stack, void (*step)(void*), void* argument) {
  Run& own = *new (stack.top()) Run{.step = step, .argument = argument};
  if (::getcontext(&own.isolated) != 0) return false;
  own.isolated.uc_stack = stack.usable();
  own.isolated.uc_link = &own.host;
  const auto address = reinterpret_cast<std::uintptr_t>(&own);
  ::makecontext(&own.isolated, reinterpret_cast<void (*)()>(run), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  switch_context(&own.host, &own.isolated);
  return own.completed;
}

}  // namespace

// Not thread_local: in a library that was loaded late, the first use in each thread would call malloc.
ThreadState* thread_state() noexcept {
  if (!has_key) return nullptr;
  if (void* known = ::pthread_getspecific(state_key)) return static_cast<ThreadState*>(known);
  if (is_unknown_child()) return nullptr;
  const SignalsHeld held;
  auto* fresh = new (std::nothrow) ThreadState;
  if (fresh != nullptr && ::pthread_setspecific(state_key, fresh) == 0) return fresh;
  delete fresh;
  return nullptr;
}

bool run_isolated(void (*step)(void*), void* argument) noexcept {
  const ErrnoKept kept;
  ThreadState* state = thread_state();
  if (state == nullptr || state->inside || is_unknown_child()) return false;
  state->inside = true;
  bool completed = false;
  {
    const SignalsHeld held;
    const Stack stack;
    if (stack && reserve_for_isolated()) {
      completed = run_on(stack, step, argument);
      release_isolated();
    }
  }
  state->inside = false;
  return completed;
}

}  // namespace iosig::runtime
