// The next definitions of the functions that this library intercepts: those of libc, or of another library that is
// preloaded after this one.
#pragma once

#include <algorithm>
#include <atomic>

#include "preload/hooks/libc_types.h"

namespace iosig::preload {

/// Finds what dlsym(RTLD_NEXT, name) would, but takes no lock and allocates nothing: the first call of a function may
/// be made in a signal handler, or in a thread for which a library's constructor waits. Null: there is none.
[[nodiscard]] void* find_next_definition(const char* name);
/// Whether that is the C library's function of this name, and makes its system call in its first instructions. false
/// where a tool has patched it, as file systems in user space do (GekkoFS by syscall_intercept, DAOS's libpil4dfs):
/// their descriptors are none of the kernel's.
[[nodiscard]] bool is_system_call_of_libc(const char* name, const void* definition);

/// Finds a function in a library that an interpreter may have loaded late and without making its symbols global
/// (RTLD_LOCAL). Null: the library is not loaded, or has no such function.
[[nodiscard]] void* find_in_late_library(const char* library, const char* name);

template <std::size_t bytes>
struct Name {
  consteval Name(const char (&given)[bytes]) { std::copy(given, given + bytes, text); }  // NOLINT: from a literal
  char text[bytes]{};
};

/// The next definition of a function. Looked up when it is first called: to look all up at the start of a process would
/// take a short program longer than its calls. Until then the pointer leads to a function that looks it up, so that a
/// call is a jump, without a test.
template <Name name, class Function>
class Next;
template <Name name, class Result, class... Parameters>
class Next<name, Result(Parameters...)> {
 public:
  Result operator()(Parameters... arguments) const { return found.load(std::memory_order_relaxed)(arguments...); }
  /// Whether it is a system call of the C library's, which is not patched. false before the first call.
  [[nodiscard]] bool is_system_call() const { return is_known_system_call.load(std::memory_order_relaxed); }

 private:
  using Function = Result(Parameters...);
  [[gnu::noinline, gnu::cold]] static Result call_first(Parameters... arguments) {
    auto* const function = reinterpret_cast<Function*>(find_next_definition(name.text));
    found.store(function, std::memory_order_relaxed);
    is_known_system_call.store(is_system_call_of_libc(name.text, reinterpret_cast<const void*>(function)),
                               std::memory_order_relaxed);
    return function(arguments...);
  }
  static inline constinit std::atomic<Function*> found{call_first};
  static inline constinit std::atomic<bool> is_known_system_call{false};
};
/// With `...` the arguments cannot be passed on by a function in between.
template <Name name, class Result, class... Parameters>
class Next<name, Result(Parameters..., ...)> {
 public:
  template <class... Arguments>
  Result operator()(Arguments... arguments) const {
    auto* function = found.load(std::memory_order_relaxed);
    if (function == nullptr) [[unlikely]]
      function = look_up();
    return function(arguments...);
  }

 private:
  using Function = Result(Parameters..., ...);
  [[gnu::noinline, gnu::cold]] static Function* look_up() {
    auto* const function = reinterpret_cast<Function*>(find_next_definition(name.text));
    found.store(function, std::memory_order_relaxed);
    return function;
  }
  static inline constinit std::atomic<Function*> found{nullptr};
};

/// A function for each row of calls.txt that has `next`.
struct Real {
#include "real.inc"
};
inline constinit Real next_definitions;

[[nodiscard]] inline const Real& real() { return next_definitions; }

}  // namespace iosig::preload
