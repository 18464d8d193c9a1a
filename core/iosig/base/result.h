// Failure as a value: Result<T> is a T or an Error that holds the facts needed to act on it.
//
// The core also runs inside GCC, libc calls and MPI ranks, where nothing may unwind, so no function of the core throws.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace iosig {

/// What went wrong, by what the user can do about it. The command line's exit status follows from it.
enum class ErrorKind {
  infeasible,  ///< a sound "no": nothing admissible, a verification failed (exit status 1)
  usage,       ///< the call itself is wrong (2)
  bad_input,   ///< a file or a text is malformed (3)
  system,      ///< the operating system refused (4)
};

struct Error {
  ErrorKind kind;
  std::string message;   ///< whole sentences for the user: file, place, what was expected, what to do
  int system_errno = 0;  ///< what a system call would set for it; 0: no errno is known
};

template <class T>
using Result = tl::expected<T, Error>;

template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(text, std::forward<Args>(args)...)});
}

/// The same with the errno that a program gets for it.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail_with_errno(int system_errno, ErrorKind kind, fmt::format_string<Args...> text,
                                                    Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(text, std::forward<Args>(args)...), system_errno});
}

/// `error` as the failure of a function with another result type.
[[nodiscard]] inline tl::unexpected<Error> pass_on(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace iosig
