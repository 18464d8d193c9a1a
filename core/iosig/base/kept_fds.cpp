#include "iosig/base/kept_fds.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>

namespace iosig {
namespace {

constexpr std::size_t most_kept = 4096, least_kept = 8;

}  // namespace

/// All keepers of the process, the most recent ones last. Those that a child inherited by fork are not in its list.
class Keepers {
 public:
  explicit Keepers(unsigned forks) : forks_(forks) {}
  [[nodiscard]] unsigned forks() const { return forks_; }

  void add(FdKeeper& keeper) {
    const std::lock_guard lock(mutex_);
    keeper.place_ = keepers_.insert(keepers_.end(), &keeper);
    keeper.forks_ = forks_;
  }
  void remove(FdKeeper& keeper) {
    const std::lock_guard lock(mutex_);
    if (!has(keeper)) return;
    take_from(keeper, keeper.kept_);
    keepers_.erase(keeper.place_);
  }
  void closed(FdKeeper& keeper, std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (has(keeper)) take_from(keeper, count);
  }
  bool may_keep(FdKeeper& keeper, std::size_t count) {
    const std::lock_guard lock(mutex_);
    const std::size_t most = max_kept_fds();
    if (kept_ + count > most) close_idle(kept_ + count - most);
    if (kept_ + count > most || !has(keeper)) return false;
    keepers_.splice(keepers_.end(), keepers_, keeper.place_);
    kept_ += count;
    keeper.kept_ += count;
    return true;
  }
  std::size_t close_all_idle() {
    const std::lock_guard lock(mutex_);
    return close_idle(SIZE_MAX);
  }

 private:
  [[nodiscard]] bool has(const FdKeeper& keeper) const { return keeper.forks_ == forks_; }
  /// The caller holds the lock. Closes `wanted` descriptors, or as many as there are.
  std::size_t close_idle(std::size_t wanted) {
    std::size_t closed = 0;
    for (FdKeeper* keeper : keepers_) {
      if (closed >= wanted) break;
      if (keeper->kept_ == 0) continue;
      const std::size_t done = keeper->close_idle_();
      take_from(*keeper, done);
      closed += done;
    }
    return closed;
  }
  void take_from(FdKeeper& keeper, std::size_t count) {
    const std::size_t taken = std::min(count, keeper.kept_);
    keeper.kept_ -= taken;
    kept_ -= taken;
  }

  const unsigned forks_;  ///< that led to this process
  std::mutex mutex_;
  std::list<FdKeeper*> keepers_;
  std::size_t kept_ = 0;
};

namespace {

alignas(Keepers) std::byte room[sizeof(Keepers)];

/// Never destroyed: other static objects may use it until the process ends. A forked child starts with an empty one,
/// because another thread of the parent may hold the lock, and because the parent's objects are not the child's.
Keepers& keepers() {
  static Keepers* const all = [] {
    ::pthread_atfork(nullptr, nullptr, [] {
      auto* const before = std::launder(reinterpret_cast<Keepers*>(room));
      new (room) Keepers(before->forks() + 1);
    });
    return new (room) Keepers(0);
  }();
  return *all;
}

}  // namespace

FdKeeper::FdKeeper(std::function<std::size_t()> close_idle) : close_idle_(std::move(close_idle)) {
  keepers().add(*this);
}

FdKeeper::~FdKeeper() { keepers().remove(*this); }

bool FdKeeper::may_keep(std::size_t count) { return keepers().may_keep(*this, count); }

void FdKeeper::closed(std::size_t count) { keepers().closed(*this, count); }

std::size_t max_kept_fds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return least_kept;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, least_kept, most_kept);
}

std::size_t close_idle_fds() { return keepers().close_all_idle(); }

Fd open_file_at(int directory, const char* path, int flags, unsigned mode) {
  for (bool is_first = true;; is_first = false) {
    Fd fd(::openat(directory, path, flags | O_CLOEXEC, mode));
    const int failure = errno;
    if (fd || !is_first || (failure != EMFILE && failure != ENFILE) || close_idle_fds() == 0) {
      errno = failure;
      return fd;
    }
  }
}

int set_mode_at(int directory, const char* name, unsigned mode) {
  const Fd file = open_file_at(directory, name, O_PATH | O_NOFOLLOW);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return -1;
  if (!S_ISLNK(status.st_mode)) return ::chmod(fmt::format("/proc/self/fd/{}", file.get()).c_str(), mode);
  errno = ELOOP;
  return -1;
}

}  // namespace iosig
