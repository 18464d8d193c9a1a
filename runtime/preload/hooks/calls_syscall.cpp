// syscall(2): libuv (Node.js) and other runtimes make some calls by number, because an older libc has no function for
// them. Each of these goes to this library's function of the same name; all other numbers go to the kernel.

#include <sys/syscall.h>

#include <concepts>
#include <cstdarg>
#include <type_traits>
#include <utility>

#include "preload/files/open_file.h"
#include "preload/hooks/entry.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/trace/recorder.h"

namespace iosig::preload {
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

/// Set while a function of this library makes the call. For some calls that function calls the next library's function,
/// which may be implemented by syscall(): that call then goes to the kernel.
constinit thread_local bool is_in_call __attribute__((tls_model("initial-exec"))) = false;
/// Of that call: its stack frame, and whether the thread could be cancelled before. longjmp(3) may leave it.
constinit thread_local const void* frame_of_call __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local int cancellation_before_call __attribute__((tls_model("initial-exec"))) = 0;

// Whether a call must go to this library's function. All others go straight to the kernel and not to the function of
// the same name: UCX, tcmalloc and others replace mmap() by a function that calls syscall().

/// A call on an open file: whether that is a container.
bool uses(int fd) { return is_ours(fd); }
/// A call that makes, moves or closes a descriptor: whether that is a container's, or one of this library's own.
bool changes(int fd) { return !is_in_call && (is_ours(fd) || engine_fds.has(fd)); }
/// A call on a path, or on a range of descriptors.
bool may_meet_container() { return !is_in_call; }

/// A call that is traced, whatever it is made on.
bool is_traced_by_number(const void* frame) {
  return trace::is_tracing && !is_in_call && !trace::is_in_posix_call(frame);
}

/// Makes the call with the first arguments, as many as the function has.
template <auto function>
long call_function(const Argument (&a)[6]) {
  const auto pass = [&a]<class Result, class... Parameters>(Result (*made)(Parameters...)) {
    return [&]<std::size_t... n>(std::index_sequence<n...>) {
      if constexpr (std::is_pointer_v<Result>)
        return reinterpret_cast<long>(made(a[n]...));
      else
        return static_cast<long>(made(a[n]...));
    }
    (std::index_sequence_for<Parameters...>());
  };
  return pass(function);
}

// Calls whose arguments are not the function's.
template <>
long call_function<entry::open>(const Argument (&a)[6]) {
  return entry::open(a[0], a[1], static_cast<mode_t>(a[2]));
}
template <>
long call_function<entry::openat>(const Argument (&a)[6]) {
  return entry::openat(a[0], a[1], a[2], static_cast<mode_t>(a[3]));
}
template <>
long call_function<entry::fcntl>(const Argument (&a)[6]) {
  return entry::fcntl(a[0], a[1], a[2].value);
}
template <>  // the offset of these two takes two arguments, the second of which counts on 32-bit systems only
long call_function<entry::preadv2>(const Argument (&a)[6]) {
  return entry::preadv2(a[0], a[1], a[2], a[3], a[5]);
}
template <>
long call_function<entry::pwritev2>(const Argument (&a)[6]) {
  return entry::pwritev2(a[0], a[1], a[2], a[3], a[5]);
}
template <>
long call_function<entry::faccessat>(const Argument (&a)[6]) {
  return entry::faccessat(a[0], a[1], a[2], 0);
}
template <>  // without a path it is futimens()
long call_function<entry::utimensat>(const Argument (&a)[6]) {
  return a[1].value == 0 ? entry::futimens(a[0], a[2]) : entry::utimensat(a[0], a[1], a[2], a[3]);
}

/// syscall() is not a cancellation point, the functions that stand in for it are.
long call_uncancelled(long (*call)(const Argument (&)[6]), const Argument (&a)[6]) {
  const CancellationOff uncancelled(runtime::may_be_cancelled());
  const ReentrancyGuard inside(is_in_call);
  if (inside) {
    frame_of_call = __builtin_frame_address(0);
    cancellation_before_call = uncancelled.before();
  }
  return call(a);
}

/// Ends a call that longjmp(3) has left: it does not lie above `frame`, in which the program makes another one.
void end_left_call(const void* frame) {
  if (frame_of_call > frame || trace::is_on_handlers_stack()) return;
  is_in_call = false;
  if (cancellation_before_call != PTHREAD_CANCEL_DISABLE)
    (void)::pthread_setcancelstate(cancellation_before_call, nullptr);
}

/// Whether the call makes a child, which shares the program's file offsets.
bool makes_child(long number) {
  switch (number) {
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork:
#endif
#ifdef SYS_clone3
    case SYS_clone3:
#endif
    case SYS_clone: return true;
    default: return false;
  }
}

/// Makes the call if it has a `number` in calls.txt and may concern a container. Sets `is_made` to false if not.
/// `frame`: of the function that the program has called.
long call_by_number(long number, const Argument (&a)[6], bool& is_made, const void* frame) {
  is_made = true;
  switch (number) {
#include "by_number.inc"
    default: break;
  }
  is_made = false;
  return -1;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

/// Reads six arguments, as libc's own does. Those that the caller did not pass are not used.
__attribute__((no_sanitize("address"))) long hook::syscall(long number, ...) {
  std::va_list rest;
  va_start(rest, number);
  Argument a[6];
  for (Argument& each : a) each.value = va_arg(rest, long);
  va_end(rest);
  if (is_in_call) [[unlikely]]
    end_left_call(__builtin_frame_address(0));
  bool is_made = false;
  const long answer = call_by_number(number, a, is_made, __builtin_frame_address(0));
  if (is_made) return answer;
  if (trace::is_tracing && makes_child(number)) trace::share_descriptions();
  return real().syscall(number, a[0].value, a[1].value, a[2].value, a[3].value, a[4].value, a[5].value);
}
