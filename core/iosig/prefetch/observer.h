// The program's side of prefetching: begin() before each read, end() after it, closed() before a descriptor is closed.
//
// A read costs some tens of nanoseconds: unless the file has only been read sequentially, it is put in a queue, and the
// planner, a thread that starts when a file has been read a few times, does all else. Nothing here takes a lock,
// allocates memory or changes errno; signal handlers may call it between any two instructions and leave by longjmp(3).
// Files that are not regular, and those opened with O_DIRECT, are left out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/prefetch/counts.h"
#include "iosig/prefetch/predictors.h"
#include "iosig/prefetch/read_queue.h"

namespace iosig::prefetch {

class Observer;
void run_planner(Observer& observer);

struct Settings {
  /// Makes the predictor of a stream; `path` is the file's when it was opened. Called by the planner's thread.
  PredictorMaker make_predictor;
  std::int64_t max_bytes = 64 << 20;  ///< requested and not read yet, of all streams together
  std::int64_t quick_ns = 10'000;     ///< as in Budget (stream.h)
  /// Whether the reads of a file are one stream, whichever thread makes them: in a daemon that serves them by a pool.
  bool is_stream_of_all_threads = false;
  /// Whether predictors may know a file's reads before the first of them: then each file is looked at from its first
  /// read on. Else the first reads are let pass, since many files are read just once.
  bool begins_at_first_read = false;
  /// Whether the planner hears of files that are only read sequentially, too: for a report of all files.
  bool hears_of_sequential = true;
  /// Called in each new thread first, after it has left the process's table of descriptors.
  void (*thread_started)() = nullptr;
};

class Observer {
 public:
  static constexpr unsigned max_fds = 1U << 14;  ///< clang initializes no more at compile time
  static constexpr std::uint32_t reads_between_probes = 8, reads_before_planner = 6;
  static constexpr std::int64_t at_file_offset = -1, unknown_length = -1;

  /// The state of a descriptor.
  struct Slot {
    enum class Kind : std::uint8_t { unknown, seen, left_out, observed };
    std::atomic<Kind> kind{Kind::unknown};
    std::atomic<bool> asks_kernel{false};     ///< the file offset is moved elsewhere, too
    std::atomic<bool> is_left_alone{false};   ///< the planner need not hear of each slow read at once
    std::atomic<bool> is_awaited{false};      ///< its close waits until the engine has closed the file, too
    std::atomic<std::uint32_t> file{0};       ///< number of the opened file
    std::atomic<std::uint32_t> skip{0};       ///< so many reads go unobserved
    std::atomic<std::uint32_t> unchecked{0};  ///< reads until the descriptor is looked at again
    std::atomic<std::int64_t> position{0};    ///< the file offset
    std::atomic<std::int64_t> took_ns{0};     ///< the last read
    std::atomic<bool> is_announced{false};    ///< the planner knows the file
    std::atomic<std::int64_t> last_begin{0}, last_length{0};  ///< of a file that is not: its last read; 0: none
    std::atomic<std::uint64_t> device{0}, inode{0};
  };
  /// A read that has begun. It has no destructor: a thread may be cancelled in the read.
  struct Reading {
    Slot* slot = nullptr;
    std::int32_t fd = -1;
    std::uint32_t file = 0;
    bool moves_offset = false, is_told = false;
    bool is_probe = false;   ///< it is timed only
    bool is_passed = false;  ///< the planner does not hear of it
    std::int64_t offset = 0, start_ns = 0;
  };

  /// All zeros: a static one takes no room in a library's file.
  constexpr Observer() = default;

  /// Begins to observe. `settings` must live as long as the process. The planner starts when it is needed.
  void start(const Settings& settings);
  /// The same, and starts the planner now: for daemons, which block signals. false: it cannot start.
  bool start_now(const Settings& settings);

  /// Called before a read of `length` bytes; `offset` may be `at_file_offset`. Of an
  /// `unknown_length` (pieces of memory that must not be looked at yet) the planner hears after the read. Keeps errno.
  [[nodiscard]] Reading begin(int fd, std::int64_t offset, std::int64_t length) {
    if (static_cast<unsigned>(fd) >= max_fds) return {};
    Slot& slot = slots_[static_cast<unsigned>(fd)];
    if (const std::uint32_t skip = slot.skip.load(std::memory_order_relaxed); skip > 0) [[likely]] {
      slot.skip.store(skip - 1, std::memory_order_relaxed);
      if (skip % reads_between_probes != 0) [[likely]]
        return {};
      return begin_probe(slot);
    }
    return begin_observed(slot, fd, offset, length);
  }
  /// Called after the read, with its result. Keeps errno.
  void end(Reading& reading, std::int64_t result) {
    if (reading.slot != nullptr) end_observed(reading, result);
  }
  /// Called before a descriptor is closed or replaced. On a network file system it waits, up to 0.1 s, until the engine
  /// has closed the file: else a file that is unlinked next would leave a hidden name behind.
  void closed(int fd) {
    if (static_cast<unsigned>(fd) < max_fds &&
        slots_[static_cast<unsigned>(fd)].kind.load(std::memory_order_relaxed) != Slot::Kind::unknown)
      forget(slots_[static_cast<unsigned>(fd)]);
  }
  /// The same, of the descriptors from `first` to `last`.
  void closed_range(unsigned first, unsigned last) {
    const unsigned end = used_slots_.load(std::memory_order_relaxed);
    for (unsigned fd = first; fd <= last && fd < end; ++fd) closed(static_cast<int>(fd));
  }
  /// Called after the program has set the file offset.
  void moved_to(int fd, std::int64_t position) {
    if (static_cast<unsigned>(fd) < max_fds)
      slots_[static_cast<unsigned>(fd)].position.store(position, std::memory_order_relaxed);
  }

  /// From now on as Settings::begins_at_first_read: predictors may know the reads of files that are opened later.
  void begin_at_first_read() { begins_at_first_read_.store(true, std::memory_order_relaxed); }

  /// Starts the planner if reads wait for it that could not start it: they had signals blocked.
  void start_waiting_planner() {
    if (state_.load(std::memory_order_relaxed) == State::wanted && queue_.size() >= reads_before_planner)
      start_planner();
  }

  /// Called in a child made by fork(): it has no planner, and gets one when it needs it. Memory of its parent's is
  /// left.
  void reinit_after_fork();

  /// Returns what has been prefetched so far, as lines for the user. Waits for the planner at most half a second.
  [[nodiscard]] std::string_view report();
  /// Returns what all files together had when report() was called.
  [[nodiscard]] const Counts& reported_counts() const { return reported_counts_; }

  /// Returns whether the report has a line of any file.
  [[nodiscard]] bool is_report_of_note() const { return is_report_of_note_; }

  /// Ends the planner and its threads. For tests, and for daemons that end.
  void stop();

 private:
  friend class Planner;
  friend void run_planner(Observer& observer);
  enum class State : std::uint8_t { off, wanted, starting, running, refused };

  [[nodiscard]] Reading begin_observed(Slot& slot, int fd, std::int64_t offset, std::int64_t length);
  void end_observed(Reading& reading, std::int64_t result);
  /// Of the reads that go unobserved some are timed, to notice when they become slow: a new phase.
  [[nodiscard]] Reading begin_probe(Slot& slot);
  void end_probe(Reading& reading, std::int64_t result);
  /// Finds out what a descriptor is. false: it is left out.
  bool look_at(Slot& slot, int fd);
  void forget(Slot& slot);
  /// Whether the planner need not hear of a read: it goes on where the last one ended, as all before it did, and the
  /// kernel's readahead serves the file. If it must, tells it of the file and of the read before.
  bool is_sequential_still(Slot& slot, int fd, std::int64_t offset);
  [[nodiscard]] std::uint32_t stream_of_this_thread() const;
  /// false: the queue is full, and the event is lost.
  bool push(const ReadEvent& event, bool wakes);
  void await_closes();
  void tell(Reading& reading, std::int64_t length);
  void start_planner();
  bool launch_planner();
  void wake();

  const Settings* settings_ = nullptr;
  std::atomic<State> state_{State::off};
  std::atomic<std::uint32_t> last_file_{0}, start_attempts_{0}, used_slots_{0};
  std::atomic<std::uint32_t> sleeping_{0};  ///< a futex: 1 while the planner sleeps
  std::atomic<std::uint64_t> wake_at_{0};   ///< number of waiting events at which it wants to be woken
  std::atomic<bool> begins_at_first_read_{false};
  std::atomic<std::uint32_t> awaited_closes_{0};
  std::atomic<bool> stops_{false}, reported_{false};
  std::array<char, 16384> report_{};
  std::atomic<std::size_t> report_bytes_{0};
  Counts reported_counts_;
  bool is_report_of_note_ = false;
  ReadQueue queue_;
  std::array<Slot, max_fds> slots_{};
};

}  // namespace iosig::prefetch
