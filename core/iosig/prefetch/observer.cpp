#include "iosig/prefetch/observer.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "iosig/base/errno_kept.h"
#include "iosig/prefetch/planner.h"
#include "iosig/prefetch/requests.h"

namespace iosig::prefetch {
namespace {

constexpr std::int64_t slow_ns = 20'000;
constexpr std::uint32_t reads_between_checks = 64, reads_of_left_out = 1024;

/// The last read of this thread.
struct ThisThread {
  std::uint32_t number, last_file;
  std::int64_t took_ns;
};
constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec"))){0, 0, 0};
constinit std::atomic<std::uint32_t> last_thread{0};

/// Whether a signal handler may be running: it runs with its signal blocked.
bool may_be_in_handler() {
  sigset_t blocked;
  if (::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) != 0) return true;
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (::sigismember(&blocked, signal) == 1) return true;
  return false;
}

}  // namespace

void Observer::start(const Settings& settings) {
  settings_ = &settings;
  begins_at_first_read_ = settings.begins_at_first_read;
  state_ = State::wanted;
}

bool Observer::start_now(const Settings& settings) {
  start(settings);
  state_ = State::starting;
  if (launch_planner()) return true;
  state_ = State::refused;
  return false;
}

bool Observer::launch_planner() {
  const auto run = [](void* observer) -> void* {
    run_planner(*static_cast<Observer*>(observer));
    return nullptr;
  };
  return start_thread(run, this);
}

Observer::Reading Observer::begin_observed(Slot& slot, int fd, std::int64_t offset, std::int64_t length) {
  if (const State state = state_.load(std::memory_order_relaxed); state == State::off || state == State::refused)
    return {};
  Slot::Kind kind = slot.kind.load(std::memory_order_relaxed);
  if (kind == Slot::Kind::unknown) {
    slot.kind.store(Slot::Kind::seen, std::memory_order_relaxed);
    const auto number = static_cast<std::uint32_t>(fd) + 1;
    for (std::uint32_t known = used_slots_.load(std::memory_order_relaxed);
         known < number && !used_slots_.compare_exchange_weak(known, number, std::memory_order_relaxed);) {
    }
    slot.last_length.store(0, std::memory_order_relaxed);
    if (!begins_at_first_read_.load(std::memory_order_relaxed)) {
      const ErrnoKept kept;
      if (offset == at_file_offset) offset = ::syscall(SYS_lseek, fd, 0, SEEK_CUR);
      if (offset < 0) return {};  // a pipe
      return {.slot = &slot, .is_passed = true, .offset = offset};
    }
  }
  const std::uint32_t unchecked = slot.unchecked.load(std::memory_order_relaxed);
  if (kind != Slot::Kind::observed || unchecked == 0) {
    if (!look_at(slot, fd)) return {};
  } else {
    slot.unchecked.store(unchecked - 1, std::memory_order_relaxed);
  }
  const bool is_here = offset == at_file_offset;
  if (is_here) {
    offset = slot.position.load(std::memory_order_relaxed);
    if (slot.asks_kernel.load(std::memory_order_relaxed)) {
      const ErrnoKept kept;
      offset = ::syscall(SYS_lseek, fd, 0, SEEK_CUR);
    }
  }
  if (!slot.is_announced.load(std::memory_order_relaxed) && is_sequential_still(slot, fd, offset))
    return {.slot = &slot, .moves_offset = is_here, .is_passed = true, .offset = offset};
  Reading reading{.slot = &slot,
                  .fd = fd,
                  .file = slot.file.load(std::memory_order_relaxed),
                  .moves_offset = is_here,
                  .offset = offset,
                  .start_ns = clock_ns()};
  if (length != unknown_length) tell(reading, length);
  return reading;
}

Observer::Reading Observer::begin_probe(Slot& slot) {
  if (slot.kind.load(std::memory_order_relaxed) != Slot::Kind::observed) return {};
  return {.slot = &slot,
          .file = slot.file.load(std::memory_order_relaxed),
          .is_told = true,
          .is_probe = true,
          .start_ns = clock_ns()};
}

void Observer::end_probe(Reading& reading, std::int64_t result) {
  const std::int64_t took_ns = clock_ns() - reading.start_ns;
  if (took_ns <= slow_ns + std::max<std::int64_t>(result, 0)) return;
  reading.slot->unchecked.store(0, std::memory_order_relaxed);
  reading.slot->is_left_alone.store(false, std::memory_order_relaxed);
  reading.slot->skip.store(0, std::memory_order_relaxed);
  ThisThread& thread = this_thread;
  thread.last_file = reading.file;
  thread.took_ns = took_ns;
  reading.slot->took_ns.store(took_ns, std::memory_order_relaxed);
}

void Observer::tell(Reading& reading, std::int64_t length) {
  constexpr std::int64_t max_length = 0x7ffff000;  // of one read(2) in Linux
  length = std::min(length, max_length);
  const ThisThread& thread = this_thread;
  reading.is_told = true;
  const bool is_one = settings_->is_stream_of_all_threads;
  // Of a thread that reads several files in turns: how long the last read of this one took, whoever made it.
  const std::int64_t took_before_ns = !is_one && thread.last_file == reading.file
                                          ? thread.took_ns
                                          : reading.slot->took_ns.load(std::memory_order_relaxed);
  push({.kind = ReadEvent::Kind::read,
        .fd = reading.fd,
        .file = reading.file,
        .thread = stream_of_this_thread(),
        .offset = reading.offset,
        .length = length,
        .start_ns = reading.start_ns,
        .took_before_ns = took_before_ns},
       took_before_ns > slow_ns + length &&
           !reading.slot->is_left_alone.load(
               std::memory_order_relaxed));  // the planner may be waiting for many more of the quick ones
}

void Observer::end_observed(Reading& reading, std::int64_t result) {
  if (reading.is_probe) return end_probe(reading, result);
  if (reading.is_passed) {
    if (result <= 0) return;
    reading.slot->last_begin.store(reading.offset, std::memory_order_relaxed);
    reading.slot->last_length.store(result, std::memory_order_relaxed);
    if (reading.moves_offset) reading.slot->position.fetch_add(result, std::memory_order_relaxed);
    return;
  }
  if (!reading.is_told && result > 0) tell(reading, result);
  ThisThread& thread = this_thread;
  thread.last_file = reading.file;
  thread.took_ns = clock_ns() - reading.start_ns;
  reading.slot->took_ns.store(thread.took_ns, std::memory_order_relaxed);
  if (reading.moves_offset && result > 0) reading.slot->position.fetch_add(result, std::memory_order_relaxed);
}

bool Observer::look_at(Slot& slot, int fd) {
  const ErrnoKept kept;
  slot.unchecked.store(reads_between_checks, std::memory_order_relaxed);
  struct stat status {};
  const long flags = ::syscall(SYS_fcntl, fd, F_GETFL);
  const bool is_readable = flags >= 0 && (flags & (O_DIRECT | O_PATH)) == 0 &&
                           ::syscall(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH) == 0 && S_ISREG(status.st_mode);
  const bool was_observed = slot.kind.load(std::memory_order_relaxed) == Slot::Kind::observed;
  const bool is_same = is_readable && was_observed && slot.device.load(std::memory_order_relaxed) == status.st_dev &&
                       slot.inode.load(std::memory_order_relaxed) == status.st_ino;
  if (!is_readable) {
    if (was_observed) forget(slot);
    slot.kind.store(Slot::Kind::left_out, std::memory_order_relaxed);
    slot.skip.store(reads_of_left_out, std::memory_order_relaxed);  // the number may then be another file's
    return false;
  }
  const std::int64_t position = ::syscall(SYS_lseek, fd, 0, SEEK_CUR);
  if (is_same) {
    if (position != slot.position.load(std::memory_order_relaxed)) {
      // After reads that were skipped this is no surprise, but then the price is small, too.
      slot.asks_kernel.store(true, std::memory_order_relaxed);
      slot.position.store(position, std::memory_order_relaxed);
    }
    return true;
  }
  if (was_observed) forget(slot);
  if (slot.kind.load(std::memory_order_relaxed) != Slot::Kind::seen)  // else its first read is remembered
    slot.last_length.store(0, std::memory_order_relaxed);
  const std::uint32_t file = last_file_.fetch_add(1, std::memory_order_relaxed) + 1;
  slot.file.store(file, std::memory_order_relaxed);
  slot.device.store(status.st_dev, std::memory_order_relaxed);
  slot.inode.store(status.st_ino, std::memory_order_relaxed);
  slot.position.store(position, std::memory_order_relaxed);
  slot.asks_kernel.store(false, std::memory_order_relaxed);
  slot.took_ns.store(0, std::memory_order_relaxed);
  slot.is_left_alone.store(false, std::memory_order_relaxed);
  slot.is_announced.store(false, std::memory_order_relaxed);
  slot.kind.store(Slot::Kind::observed, std::memory_order_relaxed);
  return true;
}

bool Observer::is_sequential_still(Slot& slot, int fd, std::int64_t offset) {
  const bool hears_of_all = settings_->hears_of_sequential || begins_at_first_read_.load(std::memory_order_relaxed);
  const std::int64_t begin = slot.last_begin.load(std::memory_order_relaxed),
                     length = slot.last_length.load(std::memory_order_relaxed);
  if (!hears_of_all && (length == 0 || offset == begin + length)) return true;
  slot.is_announced.store(true, std::memory_order_relaxed);
  const std::uint32_t file = slot.file.load(std::memory_order_relaxed);
  push({.kind = ReadEvent::Kind::opened,
        .fd = fd,
        .file = file,
        .offset = static_cast<std::int64_t>(slot.inode.load(std::memory_order_relaxed)),
        .length = static_cast<std::int64_t>(slot.device.load(std::memory_order_relaxed))},
       begins_at_first_read_.load(std::memory_order_relaxed));
  if (length > 0)
    push({.kind = ReadEvent::Kind::read,
          .fd = fd,
          .file = file,
          .thread = stream_of_this_thread(),
          .offset = begin,
          .length = length},
         false);
  return false;
}

std::uint32_t Observer::stream_of_this_thread() const {
  if (settings_->is_stream_of_all_threads) return 0;
  ThisThread& thread = this_thread;
  if (thread.number == 0) thread.number = last_thread.fetch_add(1, std::memory_order_relaxed) + 1;
  return thread.number;
}

void Observer::forget(Slot& slot) {
  const bool was_observed = slot.kind.exchange(Slot::Kind::unknown, std::memory_order_relaxed) == Slot::Kind::observed;
  const std::uint32_t file = slot.file.exchange(0);  // the planner may still have its reads
  slot.skip.store(0, std::memory_order_relaxed);
  slot.unchecked.store(0, std::memory_order_relaxed);
  if (!was_observed || !slot.is_announced.exchange(false, std::memory_order_relaxed)) return;
  const ErrnoKept kept;
  const bool is_awaited = slot.is_awaited.exchange(false);  // the planner sets it, and then looks at the file's number
  // A close that never came (a server hangs) is not waited for again.
  const bool waits = is_awaited && awaited_closes_.fetch_add(1, std::memory_order_relaxed) == 0;
  if (!push({.kind = ReadEvent::Kind::closed, .file = file, .length = is_awaited ? 1 : 0}, true) && is_awaited)
    awaited_closes_.fetch_sub(1, std::memory_order_relaxed);
  if (waits) await_closes();
}

bool Observer::push(const ReadEvent& event, bool wakes) {
  const std::uint64_t waiting = queue_.push(event);
  const bool are_enough = waiting >= reads_before_planner || waiting == 0;  // 0: it is full
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::wanted && (are_enough || begins_at_first_read_.load(std::memory_order_relaxed))) start_planner();
  if (state != State::running || (!wakes && waiting != 0 && waiting < wake_at_.load(std::memory_order_relaxed)))
    return waiting != 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the planner looks at the queue after it says that it sleeps
  if (sleeping_.load(std::memory_order_relaxed) != 0) wake();
  return waiting != 0;
}

void Observer::wake() {
  if (sleeping_.exchange(0, std::memory_order_relaxed) == 0) return;
  const ErrnoKept kept;
  (void)::syscall(SYS_futex, &sleeping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Observer::await_closes() {
  constexpr timespec soon{0, 50'000};
  constexpr std::int64_t longest_ns = 100'000'000;
  const std::int64_t begun_ns = clock_ns();
  while (awaited_closes_.load(std::memory_order_acquire) != 0 && clock_ns() - begun_ns < longest_ns)
    (void)::syscall(SYS_nanosleep, &soon, nullptr);
}

void Observer::start_planner() {
  // The C library allocates memory for a thread. A signal handler that has interrupted malloc(3) must not.
  if (start_attempts_.fetch_add(1, std::memory_order_relaxed) % 16 != 0) return;
  const ErrnoKept kept;
  if (may_be_in_handler()) return;
  State expected = State::wanted;
  if (!state_.compare_exchange_strong(expected, State::starting)) return;
  if (!launch_planner()) state_ = State::refused;
}

void Observer::reinit_after_fork() {
  if (queue_.was_used()) queue_.reset();
  for (unsigned n = 0; n < used_slots_; ++n) {
    Slot& slot = slots_[n];
    slot.kind.store(Slot::Kind::unknown, std::memory_order_relaxed);
    slot.skip.store(0, std::memory_order_relaxed);
    slot.unchecked.store(0, std::memory_order_relaxed);
    slot.is_awaited.store(false, std::memory_order_relaxed);
  }
  awaited_closes_ = 0;
  sleeping_ = 0;
  start_attempts_ = 0;
  wake_at_ = 0;
  reported_ = false;
  if (state_ != State::off) state_ = State::wanted;
}

std::string_view Observer::report() {
  if (state_ != State::running && state_ != State::starting) return {};
  const ErrnoKept kept;
  reported_ = false;
  push({.kind = ReadEvent::Kind::report}, true);
  for (int tries = 0; tries < 500 && !reported_; ++tries) {
    constexpr timespec millisecond{0, 1'000'000};
    (void)::nanosleep(&millisecond, nullptr);
  }
  return reported_ ? std::string_view(report_.data(), report_bytes_) : std::string_view();
}

void Observer::stop() {
  if (state_ == State::running || state_ == State::starting) {
    stops_ = true;
    while (stops_) {
      wake();
      constexpr timespec millisecond{0, 1'000'000};
      (void)::nanosleep(&millisecond, nullptr);
    }
  }
  state_ = State::off;
}

}  // namespace iosig::prefetch
