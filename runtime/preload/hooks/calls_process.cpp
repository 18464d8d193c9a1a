// _exit(2), execve(2) with their variants, and setrlimit(2).
//
// _exit(2) ends a process without running destructors, as shells end their children; the indices are completed here.
// Before execve(2) the descriptors that the new program needs are left open.

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdlib>

#include "iosig/base/size_limit.h"
#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/files/open_file.h"
#include "preload/hooks/real.h"

namespace iosig::preload {
namespace {

[[noreturn]] void end(int status) {
  if (!is_stray_child()) {
    begin_exit();
    finish_all();
  }
  for (;;) (void)::syscall(SYS_exit_group, status);
}

/// Reads the size limit again after a call that may have changed it.
int changed_limit(int done) {
  if (done == 0) (void)read_size_limit();
  return done;
}

/// Calls `begin`, which executes another program and returns only on failure.
template <class Begin>
int become(Begin begin) {
  leave_open(true);
  const int failed = begin();
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

extern "C" {

int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return become([&] { return real().execve(path, arguments, environment); });
}
int execv(const char* path, char* const* arguments) noexcept {
  return become([&] { return real().execve(path, arguments, environ); });
}
int execvp(const char* name, char* const* arguments) noexcept {
  return become([&] { return real().execvpe(name, arguments, environ); });
}
int execvpe(const char* name, char* const* arguments, char* const* environment) noexcept {
  return become([&] { return real().execvpe(name, arguments, environment); });
}
int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  return become([&] { return real().fexecve(fd, arguments, environment); });
}
int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed = with_listed(first, rest, [&](char** arguments) { return execv(path, arguments); });
  va_end(rest);
  return failed;
}
int execlp(const char* name, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed = with_listed(first, rest, [&](char** arguments) { return execvp(name, arguments); });
  va_end(rest);
  return failed;
}
int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int failed =
      with_listed(first, rest, [&](char** arguments) { return execve(path, arguments, va_arg(rest, char**)); });
  va_end(rest);
  return failed;
}

// RLIMIT_FSIZE also applies to containers.
int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
  return changed_limit(real().setrlimit(resource, limit));
}
int setrlimit64(__rlimit_resource_t resource, const rlimit64* limit) noexcept {
  return setrlimit(resource, reinterpret_cast<const rlimit*>(limit));
}
int prlimit(pid_t process, __rlimit_resource resource, const rlimit* limit, rlimit* before) noexcept {
  return changed_limit(real().prlimit(process, resource, limit, before));
}
int prlimit64(pid_t process, __rlimit_resource resource, const rlimit64* limit, rlimit64* before) noexcept {
  return prlimit(process, resource, reinterpret_cast<const rlimit*>(limit), reinterpret_cast<rlimit*>(before));
}

void _exit(int status) { end(status); }
void _Exit(int status) noexcept { end(status); }
}
