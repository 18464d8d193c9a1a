// Lets a verb clean up when it is interrupted.
#pragma once

#include <array>
#include <csignal>

namespace iosig::cli {

constexpr int interrupted_status = 128;  ///< plus the signal's number

/// The signal that NoticeSignals has seen; 0: none.
inline volatile std::sig_atomic_t interruption = 0;

/// Records SIGINT and SIGTERM in `interruption` while it lives. Signals that are ignored stay ignored. A call that
/// waits fails with EINTR.
class NoticeSignals {
 public:
  NoticeSignals() {
    for (Handler& handler : handlers_) {
      struct sigaction note {};
      note.sa_handler = [](int number) { interruption = number; };
      ::sigaction(handler.number, nullptr, &handler.before);
      if (handler.before.sa_handler != SIG_IGN) ::sigaction(handler.number, &note, nullptr);
    }
  }
  NoticeSignals(const NoticeSignals&) = delete;
  NoticeSignals& operator=(const NoticeSignals&) = delete;
  ~NoticeSignals() {
    for (const Handler& handler : handlers_) ::sigaction(handler.number, &handler.before, nullptr);
  }

 private:
  struct Handler {
    int number = 0;
    struct sigaction before {};
  };
  std::array<Handler, 2> handlers_{{{SIGINT, {}}, {SIGTERM, {}}}};
};

}  // namespace iosig::cli
