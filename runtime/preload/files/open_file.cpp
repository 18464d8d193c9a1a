#include "preload/files/open_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "host/diagnostics.h"
#include "host/process.h"
#include "host/table_section.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"
#include "preload/files/process_files.h"
#include "preload/files/raw_calls.h"
#include "preload/hooks/user_memory.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/part_file.h"
#include "preload/trace/recorder.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload {

IOSIG_TABLE constinit std::array<std::atomic<OpenFile*>, max_fds> open_files{};
Process* process_of_now = nullptr;
std::atomic<int> last_fd{-1};
constinit thread_local bool is_inside __attribute__((tls_model("initial-exec"))) = false;

OpenFile* new_file() {
  stand_in_for_streams();
  for (OpenFile* file : process().files)
    if (file->is_free.load(std::memory_order_acquire) && file->references == 0) {
      file->is_free = false;
      return file;
    }
  auto* file = new (std::nothrow) OpenFile;
  if (file != nullptr) process().files.push_back(file);
  return file;
}

namespace {

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// Returns 0 or errno. Must run isolated.
int find_container(OpenFile& file) {
  Process& own = process();
  const std::lock_guard lock(own.lock);
  if (file.is_ready) return 0;
  if (file.directory < 0) {
    say_failure(
        fmt::format("'{}' was opened before this program began, and is not there any more", file.shared->path.data()));
    return EIO;
  }
  std::weak_ptr<SharedContainer>& known = own.containers[{file.shared->device, file.shared->inode}];
  file.container = known.lock();
  if (!file.container) {
    auto& unsynced = own.unsynced[{file.shared->device, file.shared->inode}];
    if (!unsynced) unsynced = std::make_shared<UnsyncedWriters>();
    auto opened = SharedContainer::open(file.directory, say_failure, fill_with_zeros_if_there, unsynced);
    if (!opened) {
      say_failure(opened.error().message);
      return errno_of(opened.error());
    }
    file.container = *std::move(opened);
    known = file.container;
  } else if (own.looked_at.lock() != file.container) {
    (void)file.container->status().refresh_if_older_than(0);  // sees what other nodes have written and closed
  }
  file.is_ready.store(true, std::memory_order_release);
  return 0;
}

}  // namespace

std::shared_ptr<SharedContainer> known_container(int directory) {
  struct stat status {};
  if (::fstat(directory, &status) != 0) return nullptr;
  const std::lock_guard lock(process().lock);
  const auto known = process().containers.find({status.st_dev, status.st_ino});
  return known == process().containers.end() ? nullptr : known->second.lock();
}

int release(OpenFile& file) {
  if (!file.is_live.exchange(false)) return 0;
  const EngineGuard inside;
  int failure = 0;
  (void)run_isolated_step([&] {
    bool lacks_bytes = false;
    if (file.container && file.writer != nullptr) failure = file.container->writers().remove(file.writer, &lacks_bytes);
    if (!lacks_bytes) failure = 0;  // the writes are there, if only in the tail
    file.container.reset();
    file.writer = nullptr;
    if (const int fd = file.lock_fd.exchange(-1); fd >= 0) ::close(fd);
    if (file.directory >= 0) {
      remove_holder(*file.shared, file.directory);
      let_go_container(Fd(file.directory));
      file.directory = -1;
    }
    return 0;
  });
  file.is_ready = false;
  file.has_writer = false;
  unmap_placeholder(file.shared);
  file.shared = nullptr;
  file.is_free.store(true, std::memory_order_release);  // last: from here on another thread may reuse it
  return failure;
}

namespace {

/// Releases this process's record locks on the container, because one of its descriptors is closed (POSIX).
void end_record_locks(const OpenFile& file) {
  if (!process().has_record_locks.load(std::memory_order_relaxed)) return;
  const EngineGuard inside;
  (void)run_isolated_step([&] {
    if (file.is_ready.load(std::memory_order_acquire)) (void)file.container->exchange_with_other_nodes();
    const std::lock_guard lock(process().lock);
    process().record_locks.erase({file.shared->device, file.shared->inode});
    process().has_record_locks = !process().record_locks.empty();
    return 0;
  });
}

}  // namespace

int set(int fd, OpenFile* file) {
  if (static_cast<unsigned>(fd) >= max_fds) return 0;
  if (fd > last_fd) last_fd = fd;
  if (file != nullptr) take(*file);
  if (OpenFile* before = open_files[static_cast<unsigned>(fd)].exchange(file); before != nullptr) {
    end_record_locks(*before);
    return give_back(*before);
  }
  return 0;
}

namespace {

/// Reinitializes the engine in a child. Leaves the parent's objects untouched and closes the engine's descriptors.
void reinit_after_fork() {
  Process& own = process();
  auto files = std::move(own.files);
  new (&own) Process;  // in place: allocation could fail here
  own.files = std::move(files);
  for (OpenFile* file : own.files) {
    if (!file->is_live) continue;
    new (&file->container) std::shared_ptr<SharedContainer>;  // the child must not destroy the parent's container
    file->writer = nullptr;
    file->is_ready = false;
    file->has_writer = false;
    file->references = 0;
    file->is_leaving = false;
    engine_fds.remove(file->directory);
    engine_fds.remove(file->lock_fd);
  }
  for (auto& each : open_files)
    if (OpenFile* file = each.load(std::memory_order_relaxed)) ++file->references;
  engine_fds.for_each([](int fd) { ::close(fd); });
  for (OpenFile* file : own.files) {
    if (!file->is_live) continue;
    if (file->directory >= 0) {
      engine_fds.add(file->directory);
      add_holder(*file->shared, file->directory);
    }
    file->shared->begun_children.fetch_sub(1);
    if (file->lock_fd >= 0) engine_fds.add(file->lock_fd);
  }
}

__attribute__((constructor(102))) void load() {
  alignas(Process) static std::byte room[sizeof(Process)];
  process_of_now = new (room) Process;
  // runtime/host locks its memory at a fork, and must do so after this library. Prepare handlers run in reverse order
  // of registration, so runtime/host must register first: this call makes it do so.
  (void)runtime::is_disabled();
  ::pthread_atfork(
      [] {
        runtime::block_signals_at_fork();
        process().lock.lock();
        if (trace::is_tracing) trace::hold_opens_at_fork();
        if (trace::is_tracing) trace::share_descriptions();
        for (const OpenFile* file : process().files)
          if (file->is_live) file->shared->begun_children.fetch_add(1);
      },
      [] {
        if (trace::is_tracing) trace::release_opens_after_fork(false);
        process().lock.unlock();
        runtime::restore_signals_at_fork();
      },
      [] {
        reinit_after_fork();
        if (trace::is_tracing) trace::release_opens_after_fork(true);
        if (trace::is_tracing) trace::begin_after_fork();
        if (trace::is_tracing) trace::forget_descriptions();
        if (prefetch::is_on) prefetch::observer.reinit_after_fork();
        runtime::restore_signals_at_fork();
      });
  if (!may_have_inherited()) return;
  const EngineGuard inside;
  (void)run_isolated_step([] {
    const std::lock_guard lock(process().lock);
    adopt_inherited();
    return 0;
  });
}

}  // namespace

void say_failure(const std::string& message) { runtime::say(message); }

bool is_stray_child() { return process_of_now != nullptr && ::getpid() != process().pid; }

[[gnu::hot]] void finish_all() {
  if (last_fd < 0) return;  // there never was a container
  const EngineGuard inside;
  (void)run_isolated_step([] {
    const std::lock_guard lock(process().lock);
    for (OpenFile* file : process().files)
      if (file->is_live && file->has_writer) (void)file->container->writers().close_all();
    // The kernel closes all descriptors that the program leaves open, but does not remove deleted containers.
    for (OpenFile* file : process().files)
      if (file->is_live && file->directory >= 0) remove_holder(*file->shared, file->directory);
    for (OpenFile* file : process().files)
      if (file->is_live && file->directory >= 0 && is_unlinked(file->directory))
        let_go_container(Fd(std::exchange(file->directory, -1)));
    return 0;
  });
}

int make_ready(OpenFile& file) {
  if (file.is_ready.load(std::memory_order_acquire)) return 0;
  return run_isolated_step([&] { return find_container(file); });
}

int make_writer(OpenFile& file) {
  if (file.has_writer.load(std::memory_order_acquire)) return 0;
  return run_isolated_step([&] {
    if (const int failure = find_container(file); failure != 0) return failure;
    {
      const std::lock_guard lock(process().lock);
      if (file.writer == nullptr) file.writer = file.container->writers().add();
    }
    if (const int failure = file.container->writers().prepare(*file.writer); failure != 0) return failure;
    file.has_writer.store(true, std::memory_order_release);
    return 0;
  });
}

namespace {

/// Whether the engine can still open the droppings of its containers after the program opened one more. Without these
/// descriptors no container could be read or written.
bool has_room_for_droppings(int directory) {
  constexpr std::size_t needed = 16;
  if (directory >= min_engine_fd()) return true;  // the engine's numbers are not used up
  std::array<long, needed> copies{};
  std::size_t made = 0;
  for (; made < needed; ++made) {
    copies[made] = ::syscall(SYS_fcntl, directory, F_DUPFD_CLOEXEC, 0);
    if (copies[made] < 0) break;
  }
  for (std::size_t n = 0; n < made; ++n) sys_close(static_cast<int>(copies[n]));
  return made == needed;
}

}  // namespace

int open_container(int directory, int flags) {
  struct stat status {};
  SharedState* state = nullptr;
  const bool is_held = hold_container(directory) && ::fstat(directory, &status) == 0;
  const int fd = is_held ? make_placeholder((flags & O_CLOEXEC) != 0, state) : -1;
  if (fd < 0) {
    const int failure = errno;
    ::close(directory);
    errno = failure;
    return -1;
  }
  state->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  state->device = status.st_dev;
  state->inode = status.st_ino;
  (void)!::readlink(FdPath(directory).text, state->path.data(), state->path.size() - 1);
  OpenFile* file = nullptr;
  int failure = run_isolated_step([&] {
    {
      const std::lock_guard lock(process().lock);
      file = new_file();
      if (file == nullptr) return ENOMEM;
      file->shared = state;
      file->directory = directory;
      add_holder(*state, directory);
      if ((flags & O_CLOEXEC) == 0) state->lock_fd = file->lock_fd = open_for_locks(*file);  // shared with children
      file->placeholder_inode = inode_of(fd);
      take(*file);  // first: a late call on the object's previous file may release it in between
      file->is_live = true;
    }
    if (const int opened = find_container(*file); opened != 0) return opened;
    if ((flags & O_TRUNC) != 0) return file->container->truncate(nullptr, 0);
    return 0;
  });
  if (failure == 0 && (static_cast<unsigned>(fd) >= max_fds || !has_room_for_droppings(directory))) failure = EMFILE;
  if (failure == 0) set(fd, file);
  if (file != nullptr) {
    give_back(*file);
  } else {
    unmap_placeholder(state);
    ::close(directory);
  }
  if (failure == 0) return fd;
  sys_close(fd);
  errno = failure;
  return -1;
}

int open_for_locks(const OpenFile& file) {
  if (file.directory < 0) {
    errno = EIO;
    return -1;
  }
  const char* const manifest = container_manifest_name.data();
  int made = -1;
  for (const int access : {O_RDWR, O_RDONLY, O_WRONLY})
    if (made < 0) made = ::openat(file.directory, manifest, access | O_CLOEXEC | O_NOFOLLOW);
  return made;
}

int record_lock_fd(const OpenFile& file) {
  const std::lock_guard lock(process().lock);
  Fd& known = process().record_locks[{file.shared->device, file.shared->inode}];
  if (!known) known = Fd(open_for_locks(file));
  process().has_record_locks = true;
  return known.get();
}

void set_looked_at(const OpenFile* file) {
  (void)run_isolated_step([&] {
    const std::lock_guard lock(process().lock);
    process().looked_at = file != nullptr ? file->container : nullptr;
    return 0;
  });
}

void refresh_from_other_nodes() {
  const EngineGuard inside;
  if (!inside || process_of_now == nullptr || is_stray_child()) return;
  (void)run_isolated_step([] {
    std::vector<std::shared_ptr<SharedContainer>> open;
    {
      const std::lock_guard lock(process().lock);
      for (const auto& [place, container] : process().containers)
        if (auto live = container.lock()) open.push_back(std::move(live));
    }
    for (const auto& container : open) (void)container->refresh_from_other_nodes();
    return 0;
  });
}

void follow(int fd, int of) {
  const InUse file(of);
  if (is_ours(fd) || file) set(fd, file ? &*file : nullptr);
}

int let_go(int fd) {
  { const InUse file(fd); }  // waits while the container is converted to an ordinary file
  return set(fd, nullptr);
}

void let_go_if_replaced(int fd) {
  bool is_replaced = false;
  {
    const InUse file(fd);
    struct stat status {};
    is_replaced =
        file && (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_ino != file->placeholder_inode);
  }
  if (is_replaced) let_go(fd);
}

}  // namespace iosig::preload
