#include "iosig/base/kept_fds.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <mutex>
#include <new>

namespace iosig {
namespace {

constexpr std::size_t most_kept = 4096, least_kept = 8;

}  // namespace

/// All keepers of the process, the most recent ones last.
class Keepers {
 public:
  void add(FdKeeper& keeper) {
    const std::lock_guard lock(mutex_);
    keepers_.push_back(&keeper);
  }
  void remove(FdKeeper& keeper) {
    const std::lock_guard lock(mutex_);
    if (std::erase(keepers_, &keeper) > 0) kept_ -= keeper.kept_;  // not there: this is a forked child
  }
  void closed(FdKeeper& keeper, std::size_t count) {
    const std::lock_guard lock(mutex_);
    take_from(keeper, count);
  }
  bool may_keep(FdKeeper& keeper, std::size_t count) {
    const std::lock_guard lock(mutex_);
    const std::size_t most = max_kept_fds();
    if (kept_ + count > most) close_idle(kept_ + count - most);
    if (kept_ + count > most) return false;
    const auto found = std::ranges::find(keepers_, &keeper);
    if (found == keepers_.end()) return false;
    keepers_.splice(keepers_.end(), keepers_, found);
    kept_ += count;
    keeper.kept_ += count;
    return true;
  }
  std::size_t close_all_idle() {
    const std::lock_guard lock(mutex_);
    return close_idle(SIZE_MAX);
  }

 private:
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

  std::mutex mutex_;
  std::list<FdKeeper*> keepers_;
  std::size_t kept_ = 0;
};

namespace {

/// Never destroyed: other static objects may use it until the process ends. A forked child starts with an empty one,
/// because another thread of the parent may hold the lock, and because the parent's objects are not the child's.
Keepers& keepers() {
  alignas(Keepers) static std::byte room[sizeof(Keepers)];
  static Keepers* const all = [] {
    ::pthread_atfork(nullptr, nullptr, [] { new (room) Keepers; });
    return new (room) Keepers;
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

}  // namespace iosig
