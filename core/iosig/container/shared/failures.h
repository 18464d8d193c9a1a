// Errors of a container that is used like an ordinary file: the caller gets an errno, a log gets the whole message.
#pragma once

#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Receives the messages of failures.
using SayFailure = void (*)(const std::string& message);

/// Returns the errno of an error for a program: the error's own, or one that fits its kind. Damage is always EIO.
[[nodiscard]] int errno_of(const Error& error);

/// Passes an error's message to a log and returns its errno. EFAULT is not logged, because it is the program's fault.
class FailureLog {
 public:
  explicit FailureLog(SayFailure say) : say_(say) {}
  int operator()(const Error& error) const;

 private:
  SayFailure say_;
};

}  // namespace iosig
