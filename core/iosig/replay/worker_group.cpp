#include "iosig/replay/worker_group.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>

#include "iosig/base/files.h"

namespace iosig {
namespace {

constexpr std::size_t turn_words = 1024;  ///< many, so that few workers wait on the same futex
constexpr timespec between_looks{0, 50'000'000};
constexpr int child_failed = 1;

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}
void wake_all(std::atomic<std::uint32_t>& word) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

/// The current turn among the turns that are congruent modulo turn_words.
struct TurnWord {
  std::atomic<std::uint64_t> turn;
  std::atomic<std::uint32_t> changes;  ///< the futex
};

struct alignas(64) MemberSlot {
  std::atomic<std::uint64_t> done;
  WorkerMetrics metrics;
  ErrorKind kind;
  std::array<char, 1024> message;
};

/// Followed by `count` slots.
struct alignas(64) WorkerGroupShared {
  std::uint32_t count;
  std::atomic<std::uint32_t> arrived, meetings;
  std::array<TurnWord, turn_words> turns;
};

namespace {

MemberSlot& slot_of(WorkerGroupShared& shared, std::uint32_t number) {
  return reinterpret_cast<MemberSlot*>(&shared + 1)[number];
}

/// Zero-filled memory that the children share. Zeros are the initial state of everything in it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    at_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
  }
  [[nodiscard]] void* get() const { return at_ == MAP_FAILED ? nullptr : at_; }

 private:
  std::size_t bytes_;
  void* at_;
};

[[noreturn]] void be_member(WorkerGroupShared& shared, std::uint32_t number, pid_t maker,
                            const std::function<Result<void>(Worker&)>& work) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != maker) ::_exit(child_failed);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  Worker member(shared, number);
  const auto done = work(member);
  if (!done) {
    MemberSlot& slot = slot_of(shared, number);
    slot.kind = done.error().kind;
    std::strncpy(slot.message.data(), done.error().message.c_str(), slot.message.size() - 1);
  }
  ::_exit(done ? 0 : child_failed);
}

/// The children that have not been reaped. The destructor kills the remaining ones.
class Children {
 public:
  ~Children() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_)
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
  }
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void add(pid_t pid, std::uint32_t number) {
    pids_.push_back(pid);
    numbers_.push_back(number);
  }
  [[nodiscard]] bool is_empty() const { return pids_.empty(); }
  /// Reaps the children that have ended. Returns the number and status of the first one that failed; number -1: none.
  std::pair<std::int64_t, int> reap() {
    for (std::size_t n = 0; n < pids_.size();) {
      int status = 0;
      const pid_t ended = ::waitpid(pids_[n], &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) {
        ++n;
        continue;
      }
      const std::uint32_t number = numbers_[n];
      pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(n));
      numbers_.erase(numbers_.begin() + static_cast<std::ptrdiff_t>(n));
      if (status != 0) return {number, status};
    }
    return {-1, 0};
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<std::uint32_t> numbers_;
};

Error failure_of(WorkerGroupShared& shared, std::uint32_t number, int status) {
  const MemberSlot& slot = slot_of(shared, number);
  if (slot.message[0] != '\0') return {slot.kind, slot.message.data()};
  if (WIFSIGNALED(status))
    return {ErrorKind::system, fmt::format("process {} of {} was killed by signal {} ({})", number, shared.count,
                                           WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  return {ErrorKind::system, fmt::format("process {} of {} ended with status {}", number, shared.count, status)};
}

}  // namespace

void Worker::barrier() {
  ++meetings_;
  if (shared_->arrived.fetch_add(1) + 1 == std::uint64_t{meetings_} * shared_->count) {
    shared_->meetings.store(meetings_);
    wake_all(shared_->meetings);
    return;
  }
  for (std::uint32_t seen = shared_->meetings.load(); seen < meetings_; seen = shared_->meetings.load())
    wait_while(shared_->meetings, seen);
}

void Worker::wait_for_turn(std::uint64_t turn) {
  TurnWord& word = shared_->turns[turn % turn_words];
  for (;;) {
    const std::uint32_t seen = word.changes.load();
    if (word.turn.load() == turn) return;
    wait_while(word.changes, seen);
  }
}

void Worker::end_turn(std::uint64_t turn) {
  TurnWord& word = shared_->turns[(turn + 1) % turn_words];
  word.turn.store(turn + 1);
  word.changes.fetch_add(1);
  wake_all(word.changes);
}

void Worker::add_done(std::uint64_t count) {
  slot_of(*shared_, number_).done.fetch_add(count, std::memory_order_relaxed);
}

double& Worker::figure(std::size_t which) { return slot_of(*shared_, number_).metrics[which]; }

Result<std::vector<WorkerMetrics>> run_worker_group(std::uint32_t count,
                                                    const std::function<Result<void>(Worker&)>& work,
                                                    const std::function<bool(std::uint64_t done)>& watch) {
  const SharedMemory memory(sizeof(WorkerGroupShared) + count * sizeof(MemberSlot));
  if (memory.get() == nullptr) return system_failure("share memory among", fmt::format("{} processes", count));
  WorkerGroupShared& shared = *static_cast<WorkerGroupShared*>(memory.get());
  shared.count = count;
  const pid_t maker = ::getpid();
  Children children;
  for (std::uint32_t number = 0; number < count; ++number) {
    const pid_t pid = ::fork();
    if (pid < 0) return system_failure("start", fmt::format("process {} of {}", number, count));
    if (pid == 0) be_member(shared, number, maker, work);
    children.add(pid, number);
  }
  const auto done = [&] {
    std::uint64_t sum = 0;
    for (std::uint32_t number = 0; number < count; ++number) sum += slot_of(shared, number).done.load();
    return sum;
  };
  for (timespec pause{0, 1'000'000};;) {
    if (const auto [number, status] = children.reap(); number >= 0)
      return pass_on(failure_of(shared, static_cast<std::uint32_t>(number), status));
    if (!watch(done())) return fail(ErrorKind::system, "interrupted");
    if (children.is_empty()) break;
    ::nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(2 * pause.tv_nsec, between_looks.tv_nsec);
  }
  std::vector<WorkerMetrics> metrics;
  for (std::uint32_t number = 0; number < count; ++number) metrics.push_back(slot_of(shared, number).metrics);
  return metrics;
}

void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

double steady_s() { return seconds_of(CLOCK_MONOTONIC); }
double process_cpu_s() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace iosig
