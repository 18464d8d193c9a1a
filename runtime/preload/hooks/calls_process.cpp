// _exit(2), execve(2) with their variants, setrlimit(2) and pthread_cancel(3).
//
// _exit(2) and quick_exit(3) end a process without running destructors, as shells end their children; the indices are
// completed here.
// Before execve(2) the descriptors that the new program needs are left open.

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdlib>

#include "host/cancellation_off.h"
#include "iosig/base/size_limit.h"
#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/files/drained.h"
#include "preload/files/open_file.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload {
namespace {

/// Does what is left to do before the process ends.
void complete() {
  if (!is_stray_child()) {
    begin_exit();
    finish_all();
    start_drains(Before::exit);
    prefetch::say_report();
  }
  trace::mark_parts(true);
}

[[noreturn]] void end(int status) {
  complete();
  for (;;) (void)::syscall(SYS_exit_group, status);
}

/// quick_exit(3) runs no destructors, and calls the C library's own _exit(2). It calls the handler that was registered
/// first as the last one.
__attribute__((constructor(103))) void expect_quick_exit() { (void)::at_quick_exit(complete); }

/// Reads the size limit again after a call that may have changed it.
int changed_limit(int done) {
  if (done == 0) (void)read_size_limit();
  return done;
}

/// Calls `begin`, which executes another program and returns only on failure.
template <class Begin>
int become(Begin begin) {
  leave_open(true);
  const bool is_own = !is_stray_child();
  if (is_own) start_drains(Before::exec);
  if (is_own) prefetch::say_report();
  trace::mark_parts(true);
  if (!is_own && trace::is_tracing) trace::share_descriptions();  // of its parent, which has called vfork(2)
  const int failed = begin();
  trace::mark_parts(false);
  leave_open(false);
  return failed;
}

/// Calls begin(arguments) with an array made of a variable argument list that ends with a null pointer.
template <class Begin>
int with_listed(const char* first, va_list& rest, Begin begin) {
  va_list counted;
  va_copy(counted, rest);
  std::size_t count = 1;
  for (const char* each = first; each != nullptr; each = va_arg(counted, const char*)) ++count;
  va_end(counted);
  char** const arguments = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));  // async-signal-safe
  arguments[0] = const_cast<char*>(first);
  for (std::size_t n = 1; n < count; ++n) arguments[n] = va_arg(rest, char*);
  return begin(arguments);
}

}  // namespace

void signal_size_limit() {
  if (read_size_limit() != INT64_MAX) (void)::raise(SIGXFSZ);
}

}  // namespace iosig::preload

using namespace iosig::preload;

int hook::execve(const char* path, char* const* arguments, char* const* environment) {
  return become([&] { return real().execve(path, arguments, environment); });
}
int hook::execv(const char* path, char* const* arguments) {
  return become([&] { return real().execve(path, arguments, environ); });
}
int hook::execvp(const char* name, char* const* arguments) {
  return become([&] { return real().execvpe(name, arguments, environ); });
}
int hook::execvpe(const char* name, char* const* arguments, char* const* environment) {
  return become([&] { return real().execvpe(name, arguments, environment); });
}
int hook::execveat(int directory, const char* path, char* const* arguments, char* const* environment, int flags) {
  return become([&] { return real().execveat(directory, path, arguments, environment, flags); });
}
int hook::fexecve(int fd, char* const* arguments, char* const* environment) {
  return become([&] { return real().fexecve(fd, arguments, environment); });
}
int hook::execl(const char* path, const char* first, ...) {
  va_list rest;
  va_start(rest, first);
  const int failed = with_listed(first, rest, [&](char** arguments) { return hook::execv(path, arguments); });
  va_end(rest);
  return failed;
}
int hook::execlp(const char* name, const char* first, ...) {
  va_list rest;
  va_start(rest, first);
  const int failed = with_listed(first, rest, [&](char** arguments) { return hook::execvp(name, arguments); });
  va_end(rest);
  return failed;
}
int hook::execle(const char* path, const char* first, ...) {
  va_list rest;
  va_start(rest, first);
  const int failed =
      with_listed(first, rest, [&](char** arguments) { return hook::execve(path, arguments, va_arg(rest, char**)); });
  va_end(rest);
  return failed;
}

// RLIMIT_FSIZE also applies to containers.
int hook::setrlimit(__rlimit_resource_t resource, const rlimit* limit) {
  return changed_limit(real().setrlimit(resource, limit));
}
int hook::prlimit(pid_t process, __rlimit_resource resource, const rlimit* limit, rlimit* before) {
  return changed_limit(real().prlimit(process, resource, limit, before));
}

void hook::_exit(int status) { end(status); }

int hook::pthread_cancel(pthread_t thread) {
  runtime::cancels_threads = true;
  return real().pthread_cancel(thread);
}
