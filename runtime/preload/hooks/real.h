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

/// Finds a function in a library that an interpreter may have loaded late and without making its symbols global
/// (RTLD_LOCAL). Null: the library is not loaded, or has no such function.
[[nodiscard]] void* find_in_late_library(const char* library, const char* name);

/// The next definition of a function. Looked up when it is first called: to look all up at the start of a process would
/// take a short program longer than its calls.
template <class Function>
class FoundFunction {
 protected:
  [[nodiscard]] Function* find(const char* name) const {
    Function* const known = found_.load(std::memory_order_relaxed);
    if (known != nullptr) [[likely]]
      return known;
    return look_up(name);
  }

 private:
  [[gnu::noinline, gnu::cold]] Function* look_up(const char* name) const {
    auto* const function = reinterpret_cast<Function*>(find_next_definition(name));
    found_.store(function, std::memory_order_relaxed);
    return function;
  }
  mutable std::atomic<Function*> found_{nullptr};
};

template <std::size_t bytes>
struct Name {
  consteval Name(const char (&given)[bytes]) { std::copy(given, given + bytes, text); }  // NOLINT: from a literal
  char text[bytes]{};
};

template <Name name, class Function>
class Next;
template <Name name, class Result, class... Parameters>
class Next<name, Result(Parameters...)> : FoundFunction<Result(Parameters...)> {
 public:
  Result operator()(Parameters... arguments) const { return this->find(name.text)(arguments...); }
};
template <Name name, class Result, class... Parameters>
class Next<name, Result(Parameters..., ...)> : FoundFunction<Result(Parameters..., ...)> {
 public:
  template <class... Arguments>
  Result operator()(Arguments... arguments) const {
    return this->find(name.text)(arguments...);
  }
};

/// A function for each row of calls.txt that has `next`.
struct Real {
#include "real.inc"
};
inline constinit Real next_definitions;

[[nodiscard]] inline const Real& real() { return next_definitions; }

}  // namespace iosig::preload
