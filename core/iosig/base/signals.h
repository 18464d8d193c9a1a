// Signals that wait while something is made that must not be left half done.
#pragma once

#include <csignal>

namespace iosig {

/// While it lives, no signal reaches this thread; those that come meanwhile do afterwards.
class SignalsLater {
 public:
  SignalsLater() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsLater() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;

 private:
  sigset_t before_;
};

}  // namespace iosig
