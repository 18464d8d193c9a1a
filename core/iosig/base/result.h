// Errors as values: Result<T> is a T or an Error with the facts needed to act on it.
//
// The core also runs inside GCC, libc calls and MPI ranks, where no exception may propagate; no function of the core
// throws.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace iosig {

/// The kind of error, by what the user can do about it. Determines the command line's exit status.
enum class ErrorKind {
  infeasible,  ///< a sound "no": nothing admissible, a verification failed (exit status 1)
  usage,       ///< the call itself is wrong (2)
  bad_input,   ///< a file or a text is malformed (3)
  system,      ///< the operating system refused (4)
};

struct Error {
  ErrorKind kind;
  std::string message;   ///< full sentences for the user: file, place, what was expected, what to do
  int system_errno = 0;  ///< the errno that a system call would set; 0: none is known
};

template <class T>
using Result = tl::expected<T, Error>;

template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(text, std::forward<Args>(args)...)});
}

/// As fail(), with the errno that the program gets.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail_with_errno(int system_errno, ErrorKind kind, fmt::format_string<Args...> text,
                                                    Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(text, std::forward<Args>(args)...), system_errno});
}

/// Converts `error` to the failure of a function with another result type.
[[nodiscard]] inline tl::unexpected<Error> pass_on(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace iosig
