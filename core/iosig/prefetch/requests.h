// The requests of prefetching: carried out in their order by a few threads, so that a call that blocks stops neither
// the program nor the planner.
//
// How many run at once follows the storage, as TCP Vegas follows a network: while requests take no longer than the
// quickest ones of their size did, one more may run; when they wait behind each other (twice that time), one less. So a
// read of the program waits behind about one of them, and a storage with many channels has many to do. At first, until
// one takes half as long again, each request that is done allows one more.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "iosig/prefetch/own_file.h"

namespace iosig::prefetch {

inline constexpr std::int64_t max_piece_bytes = 4 << 20;

struct Request {
  enum class State : std::uint8_t { waiting, running, done, cached, failed, cancelled };
  std::shared_ptr<OwnFile> file;
  std::int64_t offset = 0, length = 0;
  std::atomic<State> state{State::waiting};
  std::atomic<std::int64_t> begun_ns{0}, done_ns{0};

  [[nodiscard]] bool has_begun() const { return state != State::waiting && state != State::cancelled; }
  /// Cancels it if it has not begun.
  bool cancel() {
    State expected = State::waiting;
    return state.compare_exchange_strong(expected, State::cancelled);
  }
};

/// Returns CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t clock_ns();

/// Starts a thread with all signals blocked and a small stack. A process ends without waiting for it when its other
/// threads have ended, also by pthread_exit(3) (with glibc 2.34 and later). false: the system has no room for one.
[[nodiscard]] bool start_thread(void* (*run)(void*), void* argument);

class Requests {
 public:
  static constexpr unsigned max_threads = 16;

  /// Adds a request at the end. Threads begin when the first is added; they have the caller's table of descriptors.
  void add(const std::shared_ptr<Request>& request);
  /// Waits until none is running, and ends the threads. For tests: a program's threads end with it.
  void stop();
  ~Requests() { stop(); }

  /// Returns how many requests may run at once now.
  [[nodiscard]] unsigned window() const;

 private:
  void work();
  /// Starts a thread if one more request may run than there are threads. Called with the lock.
  void start_worker();
  /// Adapts the window to a request that took so long.
  void learn(std::int64_t length, std::int64_t took_ns);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> waiting_;
  unsigned threads_ = 0, idle_ = 0, running_ = 0;
  bool is_stopped_ = false;
  double window_ = 2;
  bool is_slow_start_ = true;
  std::array<double, 24> quickest_ns_{};  ///< by the length's logarithm; 0: none yet
};

}  // namespace iosig::prefetch
