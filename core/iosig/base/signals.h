// Defers signals while an object is created that must not remain incomplete.
#pragma once

#include <csignal>

namespace iosig {

/// Blocks signals in this thread during its lifetime; pending signals are delivered afterwards.
///
/// SIGSYS stays unblocked: a program that emulates system calls for its seccomp filter also emulates those made here,
/// and the kernel would kill it for such a call while SIGSYS is blocked. Its handler may run at any system call.
/// SIGSEGV, SIGBUS, SIGFPE and SIGILL of an instruction end the process, because a handler could leave by longjmp(3).
class SignalsLater {
 public:
  SignalsLater() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsLater() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;

 private:
  sigset_t before_;
};

}  // namespace iosig
