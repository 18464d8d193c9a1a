// SIGINT, SIGTERM and SIGHUP while a verb has something to clean up.
#pragma once

#include <array>
#include <csignal>

namespace iosig::cli {

inline constexpr int interrupted_status = 128;  ///< plus the signal's number

/// The signal that came while a NoticeSignals lived; 0: none.
[[nodiscard]] int interruption();

/// Records SIGINT, SIGTERM and SIGHUP while it lives. Signals that are ignored stay ignored.
class NoticeSignals {
 public:
  NoticeSignals();
  NoticeSignals(const NoticeSignals&) = delete;
  NoticeSignals& operator=(const NoticeSignals&) = delete;
  ~NoticeSignals();

 private:
  struct Handler {
    int number = 0;
    struct sigaction before {};
  };
  std::array<Handler, 3> handlers_{{{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}}};
};

}  // namespace iosig::cli
