// Converts a container to an ordinary file while the program has it open, because only an ordinary file supports a
// shared mapping.
//
// The conversion is invisible to the program. Calls on the file wait until it is done. The descriptors keep their
// numbers, offsets, flags and locks. Other programs see either the container or the complete file under the name. A
// container that another process has open is not converted, because that process would continue to use the container.

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/file.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "host/process.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/flatten.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"
#include "preload/files/process_files.h"
#include "preload/hooks/real.h"

namespace iosig::preload {
namespace {

constexpr int max_moments = 20'000;  ///< limit of the wait for running calls: 20,000 * 50 us = one second

/// A memory barrier in all threads (membarrier(2)): each thread sees the earlier writes of all others. Returns false if
/// the kernel does not support it.
bool meet_other_threads() {
  return __libc_single_threaded != 0 || ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

/// A lock as listed in /proc/self/fdinfo.
struct Lock {
  bool is_of_flock = false;
  struct flock range {};
};

std::vector<Lock> locks_of(int fd) {
  std::vector<Lock> locks;
  const std::string path = fmt::format("/proc/self/fdinfo/{}", fd);
  const Fd info(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; info && (got = ::read(info.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  for (std::size_t at = 0; (at = text.find("lock:", at)) != std::string::npos; ++at) {
    std::array<char, 16> kind{}, access{}, end{};
    long long begin = 0;
    if (std::sscanf(text.c_str() + at, "lock: %*d: %15s %*s %15s %*s %*s %lld %15s", kind.data(), access.data(), &begin,
                    end.data()) != 4)
      continue;
    Lock lock;
    lock.is_of_flock = std::string_view(kind.data()) == "FLOCK";
    lock.range.l_type = std::string_view(access.data()) == "READ" ? F_RDLCK : F_WRLCK;
    lock.range.l_whence = SEEK_SET;
    lock.range.l_start = begin;
    lock.range.l_len = std::string_view(end.data()) == "EOF" ? 0 : std::atoll(end.data()) - begin + 1;
    locks.push_back(lock);
  }
  return locks;
}

/// One open file that is converted.
struct Change {
  OpenFile* file = nullptr;
  std::vector<int> numbers;  ///< its descriptors
  std::vector<int> closes;   ///< FD_CLOEXEC or 0 for each of them
  int ordinary = -1;         ///< the ordinary file, opened with the same flags
  int placeholder = -1;      ///< a duplicate of the placeholder, used if the conversion fails
};

class Leaving {
 public:
  Leaving() = default;
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() {
    for (const Change& change : changes_) {
      for (const int fd : {change.ordinary, change.placeholder})
        if (fd >= 0) ::close(fd);
    }
  }

  /// Converts the container of `fd`. Returns false, and changes nothing, on failure. Must run isolated.
  bool run(int fd) {
    {
      const std::lock_guard lock(process().lock);
      OpenFile* const asked = open_files[static_cast<unsigned>(fd)];
      if (asked == nullptr || asked->directory < 0) return false;
      for (OpenFile* file : process().files)
        if (file->is_live && file->shared->device == asked->shared->device &&
            file->shared->inode == asked->shared->inode) {
          if (file->is_leaving || file->directory < 0) {  // another thread is converting it
            changes_.clear();
            return false;
          }
          changes_.push_back({file, {}, {}});
        }
      for (const Change& change : changes_) change.file->is_leaving = true;
    }
    if (!meet_other_threads() || !are_calls_done()) return false;
    const std::lock_guard lock(process().lock);
    find_numbers();
    return is_alone() && replace();
  }

  /// Releases the containers as close(2) does, or resumes their use if they were not converted. Must not run isolated.
  void end(bool is_ordinary) {
    for (const Change& change : changes_) take(*change.file);
    if (is_ordinary)
      for (const Change& change : changes_)
        for (const int number : change.numbers) set(number, nullptr);
    for (const Change& change : changes_) {
      change.file->is_leaving = false;
      give_back(*change.file);
    }
  }

 private:
  static unsigned numbers_of(const OpenFile* file) {
    unsigned count = 0;
    for (int fd = 0; fd <= last_fd; ++fd)
      if (open_files[static_cast<unsigned>(fd)] == file) ++count;
    return count;
  }

  /// Waits for calls of other threads that have already begun. Returns false after one second.
  [[nodiscard]] bool are_calls_done() const {
    for (int moments = 0; moments < max_moments; ++moments) {
      if (std::ranges::all_of(changes_,
                              [](const Change& each) { return each.file->references == numbers_of(each.file); }))
        return true;
      wait_a_moment();
    }
    return false;
  }

  void find_numbers() {
    for (Change& change : changes_)
      for (int fd = 0; fd <= last_fd; ++fd)
        if (open_files[static_cast<unsigned>(fd)] == change.file) {
          change.numbers.push_back(fd);
          change.closes.push_back(::fcntl(fd, F_GETFD));
        }
  }

  /// Whether no other process shares one of the open files. flatten_container() checks by locks whether another process
  /// has opened the container by itself.
  [[nodiscard]] bool is_alone() const {
    for (const Change& change : changes_) {
      const SharedState& shared = *change.file->shared;
      if (shared.begun_children != 0) return false;
      for (const auto& each : shared.holders) {
        const std::uint64_t known = each.load();
        const auto holder = static_cast<pid_t>(known >> 32);
        if (holder == 0 || holder == ::getpid()) continue;
        const std::string name = fmt::format("/proc/{}/fd/{}", holder, static_cast<std::uint32_t>(known));
        struct stat status {};
        const bool is_known = ::stat(name.c_str(), &status) == 0;
        if (is_known ? status.st_dev == shared.device && status.st_ino == shared.inode : errno != ENOENT) return false;
      }
    }
    return true;
  }

  /// Replaces the container. The caller holds the process's lock.
  bool replace() {
    OpenFile& first = *changes_.front().file;
    if (!first.container || first.container->writers().close_all() != 0) return false;
    const std::string path = place_of(first.directory);
    const bool was_unlinked = is_unlinked(first.directory);
    if (path.empty()) return false;
    FlattenOwnUse own;
    for (const Change& change : changes_) own.held.push_back(change.file->directory);
    own.on_draft = [&](int draft) { return open_as_they_are(draft); };
    own.before_exchange = [&] { return put_behind_numbers(); };
    if (auto done = flatten_container(path, {}, own); !done && is_container(path)) {
      put_back();
      return false;
    }
    if (was_unlinked) (void)::unlink(path.c_str());
    process().record_locks.erase({first.shared->device, first.shared->inode});
    process().has_record_locks = !process().record_locks.empty();
    runtime::say_once(
        "mapped",
        fmt::format("'{}' is mapped shared, which a container cannot be: it is an ordinary file now", printable(path)));
    return true;
  }

  Result<void> open_as_they_are(int draft) {
    constexpr int kept = O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_NOATIME | O_ASYNC;
    for (Change& change : changes_) {
      const int flags = change.file->flags();
      change.ordinary = ::open(FdPath(draft).text, (flags & kept) | O_CLOEXEC);
      if (change.ordinary < 0) return system_failure("open", change.file->shared->path.data());
      if ((flags & O_DIRECT) != 0) (void)::fcntl(change.ordinary, F_SETFL, (flags & kept) | O_DIRECT);
    }
    return {};
  }

  Result<void> put_behind_numbers() {
    std::vector<Lock> of_process;
    if (const auto known =
            process().record_locks.find({changes_.front().file->shared->device, changes_.front().file->shared->inode});
        known != process().record_locks.end() && known->second)
      of_process = locks_of(known->second.get());
    for (Change& change : changes_) {
      (void)::lseek(change.ordinary, change.file->shared->offset, SEEK_SET);
      const int lock_fd = change.file->lock_fd;
      for (Lock& lock : lock_fd >= 0 ? locks_of(lock_fd) : std::vector<Lock>()) {
        const int done = lock.is_of_flock
                             ? ::flock(change.ordinary, (lock.range.l_type == F_RDLCK ? LOCK_SH : LOCK_EX) | LOCK_NB)
                             : ::fcntl(change.ordinary, F_OFD_SETLK, &lock.range);
        if (done != 0) return system_failure("lock", change.file->shared->path.data());
      }
      if (change.numbers.empty()) continue;
      change.placeholder = keep_for_engine(static_cast<int>(::syscall(SYS_dup, change.numbers.front())));
      if (change.placeholder < 0) return system_failure("open", change.file->shared->path.data());
      for (std::size_t n = 0; n < change.numbers.size(); ++n)
        ::syscall(SYS_dup3, change.ordinary, change.numbers[n], (change.closes[n] & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
      ::close(std::exchange(change.ordinary, -1));
    }
    // Record locks come last: closing any descriptor of the file releases them.
    const auto open = std::ranges::find_if(changes_, [](const Change& each) { return !each.numbers.empty(); });
    for (Lock& lock : of_process)
      if (open == changes_.end() || ::fcntl(open->numbers.front(), F_SETLK, &lock.range) != 0)
        return system_failure("lock", changes_.front().file->shared->path.data());
    return {};
  }

  void put_back() {
    for (const Change& change : changes_)
      for (std::size_t n = 0; change.placeholder >= 0 && n < change.numbers.size(); ++n)
        ::syscall(SYS_dup3, change.placeholder, change.numbers[n],
                  (change.closes[n] & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  }

  std::vector<Change> changes_;
};

}  // namespace

void wait_a_moment() {
  const timespec moment{0, 50'000};
  ::syscall(SYS_nanosleep, &moment, nullptr);
}

bool become_ordinary(int fd) {
  if (process_of_now == nullptr || is_stray_child()) return false;
  const runtime::ErrnoKept kept;
  const EngineGuard inside;
  if (!inside) return false;
  Leaving* leaving = nullptr;
  bool is_ordinary = false;
  (void)run_isolated_step([&] {
    leaving = new Leaving;
    is_ordinary = leaving->run(fd);
    return 0;
  });
  if (leaving == nullptr) return false;
  leaving->end(is_ordinary);
  (void)run_isolated_step([&] {
    delete leaving;
    return 0;
  });
  return is_ordinary;
}

}  // namespace iosig::preload
