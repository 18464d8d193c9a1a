// An open container: the object behind a descriptor and all its duplicates.
#pragma once

#include <fcntl.h>
#include <sys/single_threaded.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "host/cancellation_off.h"
#include "host/reentrancy_guard.h"
#include "host/run_isolated.h"
#include "iosig/container/shared/shared_container.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/placeholder.h"

namespace iosig::preload {

/// One for each open file description of this process. Objects are reused, never freed.
struct OpenFile {
  SharedState* shared = nullptr;
  std::atomic<std::uint32_t> references{0};  ///< descriptors and running calls
  std::atomic<bool> is_live{false};
  std::atomic<bool> is_free{false};     ///< released: it may be reused once `references` is 0
  std::atomic<bool> has_writer{false};  ///< its dropping exists
  std::atomic<bool> is_ready{false};    ///< `container` is open
  std::atomic<bool> is_leaving{false};  ///< it is being converted to an ordinary file: calls wait for the outcome
  int directory = -1;                   ///< the container's directory, with a shared lock while it is open anywhere
  std::atomic<int> lock_fd{-1};         ///< bears the locks of flock(2) and the open file description locks
  std::shared_ptr<SharedContainer> container;
  OpenWriter* writer = nullptr;
  std::uint64_t placeholder_inode = 0;

  [[nodiscard]] int flags() const { return shared->flags.load(std::memory_order_relaxed); }
  [[nodiscard]] bool reads() const { return access() == O_RDONLY || access() == O_RDWR; }
  [[nodiscard]] bool writes() const { return access() == O_WRONLY || access() == O_RDWR; }
  /// The value 3 permits neither reads nor writes, as in the kernel.
  [[nodiscard]] int access() const { return flags() & O_ACCMODE; }
};

extern std::array<std::atomic<OpenFile*>, max_fds> open_files;

/// Whether the descriptor refers to a container. This is the only overhead for descriptors that do not.
[[nodiscard]] inline bool is_ours(int fd) {
  if (static_cast<unsigned>(fd) >= max_fds) [[unlikely]]
    return false;
  return open_files[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != nullptr;
}

/// Set while the thread runs inside the container engine. Calls of a signal handler that interrupted it are refused.
extern constinit thread_local bool is_inside __attribute__((tls_model("initial-exec")));

using runtime::CancellationOff;
using runtime::ReentrancyGuard;

/// Marks the thread as inside the engine. It cannot be cancelled there: destructors must run, and the container be
/// consistent. Converts to false if the thread was inside already.
class EngineGuard {
 public:
  explicit operator bool() const { return static_cast<bool>(inside_); }

 private:
  CancellationOff uncancelled_{runtime::may_be_cancelled()};
  ReentrancyGuard inside_{is_inside};
};

/// Runs `step` isolated from the host (runtime/host/run_isolated.h) and returns its result, 0 or errno. For rare, long
/// operations. The calling thread must hold an EngineGuard.
template <class Step>
[[nodiscard]] int run_isolated_step(Step step) {
  int failure = ENOMEM;
  if (!runtime::run_isolated([&] { failure = step(); })) failure = ENOMEM;
  return failure;
}

/// Releases the container after the last descriptor is closed and no call is running. Returns 0 or the errno of a file
/// system that refuses earlier writes when a file is closed.
int release(OpenFile& file);

inline void take(OpenFile& file) {
  if (__libc_single_threaded != 0)
    file.references.store(file.references.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else
    file.references.fetch_add(1, std::memory_order_acquire);
}

/// Returns what release() does if this was the last reference, else 0.
inline int give_back(OpenFile& file) {
  if (__libc_single_threaded != 0) {
    const std::uint32_t left = file.references.load(std::memory_order_relaxed) - 1;
    file.references.store(left, std::memory_order_relaxed);
    return left == 0 ? release(file) : 0;
  }
  return file.references.fetch_sub(1, std::memory_order_acq_rel) == 1 ? release(file) : 0;
}

/// Sleeps 50 us while another thread changes what the caller is waiting for.
void wait_a_moment();

/// Keeps the file alive during one call, even if another thread closes the descriptor.
class InUse {
 public:
  explicit InUse(int fd) {
    if (static_cast<unsigned>(fd) >= max_fds) return;
    const std::atomic<OpenFile*>& place = open_files[static_cast<unsigned>(fd)];
    for (;;) {
      OpenFile* const file = place.load(std::memory_order_acquire);
      if (file == nullptr) return;
      take(*file);
      const bool is_leaving = file->is_leaving.load(std::memory_order_relaxed);
      if (!is_leaving && place.load(std::memory_order_acquire) == file) {
        file_ = file;
        return;
      }
      give_back(*file);
      if (is_leaving) wait_a_moment();
    }
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() {
    if (file_ != nullptr) give_back(*file_);
  }
  explicit operator bool() const { return file_ != nullptr; }
  OpenFile* operator->() const { return file_; }
  OpenFile& operator*() const { return *file_; }

 private:
  OpenFile* file_ = nullptr;
};

/// Opens the container of the file if it is not open yet. Returns 0 or errno.
int make_ready(OpenFile& file);
/// Like make_ready(), and creates the dropping of the file.
int make_writer(OpenFile& file);

/// Returns a new descriptor for the container whose directory is open as `directory`; -1 with errno. Takes ownership of
/// `directory`, a descriptor of the engine, even on failure.
int open_container(int directory, int flags);

/// Returns the descriptor that bears this process's record locks on the container; -1 with errno. Closing any
/// descriptor of the container releases these locks, as POSIX requires. Must run isolated.
int record_lock_fd(const OpenFile& file);
/// Opens a new descriptor that can bear locks. Returns -1 with errno on failure.
int open_for_locks(const OpenFile& file);

/// Makes the writes of other nodes visible in all open containers.
void refresh_from_other_nodes();

/// Replaces the container of `fd` by an ordinary file with the same bytes, under its name and behind all descriptors
/// that this process has for it. The descriptors keep their offsets, flags and locks. Returns false if it stays a
/// container, because another process has it open or the system refused.
[[nodiscard]] bool become_ordinary(int fd);

/// Records that the container of `file` is up to date: the next open of it in this process does not check for writes of
/// other nodes. nullptr clears the record.
void set_looked_at(const OpenFile* file);

/// Returns the container of the open `directory` if this process has it open, else null. Must run isolated.
std::shared_ptr<SharedContainer> known_container(int directory);

/// Called after the kernel has made `fd` a duplicate of `of`: records it. Releases what `fd` referred to before.
void follow(int fd, int of);
/// Called before the kernel closes a descriptor: releases its container.
int let_go(int fd);
/// Called after a function of libc that may have given the number `fd` to another file by calls that cannot be
/// intercepted: releases the container then.
void let_go_if_replaced(int fd);
/// Whether this process is a child that was not made by fork(): it shares its parent's tables (vfork), or its copy was
/// made while other threads changed them.
[[nodiscard]] bool is_stray_child();
/// Completes the indices of all writers and releases deleted containers, before the process ends.
void finish_all();
/// Called with true before execve(2): the descriptors that the new program needs for its inherited containers stay
/// open. These are the descriptors that bear locks, and the directories, which hold the containers meanwhile. Called
/// with false after execve(2) has failed: sets close-on-exec on them again.
void leave_open(bool left);

void say_failure(const std::string& message);

}  // namespace iosig::preload
