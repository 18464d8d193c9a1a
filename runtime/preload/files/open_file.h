// An open file that is a container: what stands behind a descriptor, and behind its duplicates.
#pragma once

#include <fcntl.h>
#include <sys/single_threaded.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "host/reentrancy_guard.h"
#include "host/run_isolated.h"
#include "iosig/container/shared/shared_container.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/placeholder.h"

namespace iosig::preload {

/// One for each open file description that this process has. Never given back, but used again.
struct OpenFile {
  SharedState* shared = nullptr;
  std::atomic<std::uint32_t> references{0};  ///< descriptors and calls at work
  std::atomic<bool> is_live{false};
  std::atomic<bool> is_free{false};     ///< all of it was let go: it may be used again once nobody refers to it
  std::atomic<bool> has_writer{false};  ///< its dropping is made
  std::atomic<bool> is_ready{false};    ///< container is there
  std::atomic<bool> is_leaving{false};  ///< it becomes an ordinary file: calls wait until that is decided
  int directory = -1;                   ///< the container's, locked shared as long as it is open somewhere
  std::atomic<int> lock_fd{-1};         ///< bears flock(2)'s lock, and those of the open file
  std::shared_ptr<SharedContainer> container;
  OpenWriter* writer = nullptr;
  std::uint64_t placeholder_inode = 0;

  [[nodiscard]] int flags() const { return shared->flags.load(std::memory_order_relaxed); }
  [[nodiscard]] bool reads() const { return access() == O_RDONLY || access() == O_RDWR; }
  [[nodiscard]] bool writes() const { return access() == O_WRONLY || access() == O_RDWR; }
  /// 3, as the kernel has it, is neither to read nor to write.
  [[nodiscard]] int access() const { return flags() & O_ACCMODE; }
};

extern std::array<std::atomic<OpenFile*>, max_fds> open_files;

/// Whether the descriptor is a container's: all that it costs an ordinary one.
[[nodiscard]] inline bool is_ours(int fd) {
  return static_cast<unsigned>(fd) < max_fds &&
         open_files[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != nullptr;
}

/// The thread is in the container engine: calls of a signal handler that interrupted it are refused.
using runtime::ReentrancyGuard;
extern constinit thread_local bool is_inside __attribute__((tls_model("initial-exec")));

/// Runs `step`, which gives 0 or errno, isolated from the host (runtime/host/run_isolated.h): for rare, long work. The
/// thread must have a ReentrancyGuard.
template <class Step>
[[nodiscard]] int run_isolated_step(Step step) {
  int failure = ENOMEM;
  if (!runtime::run_isolated([&] { failure = step(); })) failure = ENOMEM;
  return failure;
}

/// The last descriptor is closed, and no call is at work.
void release(OpenFile& file);

inline void take(OpenFile& file) {
  if (__libc_single_threaded != 0)
    file.references.store(file.references.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else
    file.references.fetch_add(1, std::memory_order_acquire);
}

inline void give_back(OpenFile& file) {
  if (__libc_single_threaded != 0) {
    const std::uint32_t left = file.references.load(std::memory_order_relaxed) - 1;
    file.references.store(left, std::memory_order_relaxed);
    if (left == 0) release(file);
  } else if (file.references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    release(file);
  }
}

/// Before a look at something that another thread is about to change.
void wait_a_moment();

/// For one call: keeps the file while another thread may close it.
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

/// 0, or errno. Its container is open afterwards.
int make_ready(OpenFile& file);
/// The same, and its dropping is made.
int make_writer(OpenFile& file);

/// A descriptor for the container whose directory is open as `directory`, an engine's descriptor that is taken over in
/// any case. -1 with errno.
int open_container(int directory, int flags);

/// The descriptor that bears the locks of this process on the container, which closing any of its descriptors ends.
/// -1 with errno. Runs isolated.
int record_lock_fd(const OpenFile& file);
/// One for locks, newly opened. -1 with errno.
int open_for_locks(const OpenFile& file);

/// What other nodes have written is looked for in every container that is open.
void refresh_from_other_nodes();

/// Puts an ordinary file with the same bytes in the place of the container of `fd`, and behind all descriptors that
/// this process has for it, with their offsets, flags and locks. false: it stays a container, as another process has it
/// open, or the system refused.
[[nodiscard]] bool become_ordinary(int fd);

/// The container was looked at just now: whoever opens it too need not look for others. nullptr: none was.
void set_looked_at(const OpenFile* file);

/// The container of the open `directory`, if this process has it open; else nothing. Runs isolated.
std::shared_ptr<SharedContainer> known_container(int directory);

/// The number `fd` stands for what `of` stands for, after the kernel has made it so. Whatever it stood for is let go.
void follow(int fd, int of);
/// Before the kernel closes a descriptor: it is an ordinary number from now on.
void let_go(int fd);
/// A child that was not made by fork: its tables are its parent's, or were copied while others changed them.
[[nodiscard]] bool is_stray_child();
/// What all files have written is in their indices.
void finish_all();
/// Before this process begins another program, or when it could not: what the program needs of its inherited containers
/// stays open, the descriptors that bear locks, and the directories, which hold the containers meanwhile.
void leave_open(bool left);

void say_failure(const std::string& message);

}  // namespace iosig::preload
