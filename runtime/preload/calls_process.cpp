// Programs that end or become others: _exit(2), which ends one without its destructors, as shells end their children,
// so that what it wrote is finished here; and execve(2) with its variants, after which descriptors are found again.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

#include "data.h"
#include "open_file.h"
#include "real.h"

namespace iosig::preload {
namespace {

[[noreturn]] void end(int status) {
  if (!is_stray_child()) {
    begin_exit();
    finish_all();
  }
  for (;;) (void)::syscall(SYS_exit_group, status);
}

/// Does `begin`, which comes back only when it has failed.
template <class Begin>
int become(Begin begin) {
  leave_open(true);
  const int failed = begin();
  leave_open(false);
  return failed;
}

/// Calls begin(arguments) with the arguments of a call that has them one by one, up to a null.
template <class Begin>
int with_listed(const char* first, va_list& rest, Begin begin) {
  va_list counted;
  va_copy(counted, rest);
  std::size_t count = 1;
  for (const char* each = first; each != nullptr; each = va_arg(counted, const char*)) ++count;
  va_end(counted);
  char** const arguments = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));  // may be a signal handler
  arguments[0] = const_cast<char*>(first);
  for (std::size_t n = 1; n < count; ++n) arguments[n] = va_arg(rest, char*);
  return begin(arguments);
}

}  // namespace
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

void _exit(int status) { end(status); }
void _Exit(int status) noexcept { end(status); }
}
