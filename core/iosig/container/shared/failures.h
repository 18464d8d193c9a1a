// Failures of a container that is in use as an ordinary file: the caller gets an errno, a log the whole message.
#pragma once

#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Receives the messages of failures.
using SayFailure = void (*)(const std::string& message);

/// The errno that a program gets for an error: the error's own, or else one for its kind. Damage is always EIO.
[[nodiscard]] int errno_of(const Error& error);

/// Passes a failure's message to a log and returns its errno. EFAULT is not logged: the program's memory is at fault.
class FailureLog {
 public:
  explicit FailureLog(SayFailure say) : say_(say) {}
  int operator()(const Error& error) const;

 private:
  SayFailure say_;
};

}  // namespace iosig
