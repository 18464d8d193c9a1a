#include "open_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "common/process.h"
#include "common/voice.h"
#include "iosig/store/container_folder.h"
#include "iosig/store/removal.h"
#include "user_memory.h"

namespace iosig::preload {

std::array<std::atomic<OpenFile*>, most_fds> open_files;
constinit thread_local bool is_inside __attribute__((tls_model("initial-exec"))) = false;

namespace {

/// The process's containers and files. Never destroyed: programs write to the very end, and a child by fork leaves its
/// parent's alone.
struct Process {
  std::mutex lock;  ///< of all that follows, and of changes of open_files
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SharedContainer>> containers;
  std::weak_ptr<SharedContainer> looked_at;
  std::vector<OpenFile*> files;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Fd> record_locks;  ///< by the container's device and inode
  std::atomic<bool> has_record_locks{false};
  pid_t pid = ::getpid();
};

Process* process_of_now = nullptr;

Process& process() { return *process_of_now; }

long sys_open(const char* path, int flags) { return ::syscall(SYS_openat, AT_FDCWD, path, flags, 0); }
void sys_close(long fd) { ::syscall(SYS_close, fd); }

/// With the process's lock held.
OpenFile* new_file() {
  for (OpenFile* file : process().files)
    if (file->is_free.load(std::memory_order_acquire) && file->references == 0) {
      file->is_free = false;
      return file;
    }
  auto* file = new (std::nothrow) OpenFile;
  if (file != nullptr) process().files.push_back(file);
  return file;
}

std::uint64_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// 0 or errno; as a guest.
int find_container(OpenFile& file) {
  Process& own = process();
  const std::lock_guard lock(own.lock);
  if (file.is_ready) return 0;
  if (file.folder < 0) {
    say_failure(
        fmt::format("'{}' was opened before this program began, and is not there any more", file.shared->path.data()));
    return EIO;
  }
  std::weak_ptr<SharedContainer>& known = own.containers[{file.shared->device, file.shared->inode}];
  file.container = known.lock();
  if (!file.container) {
    errno = 0;
    auto opened = SharedContainer::open(file.folder, say_failure, fill_with_zeros_if_there);
    if (!opened) {
      const int seen = errno;
      say_failure(opened.error().message);
      return errno_of(opened.error(), seen);
    }
    file.container = *std::move(opened);
    known = file.container;
  } else if (own.looked_at.lock() != file.container) {
    (void)file.container->look_for_others(0);  // what other nodes have written and closed
  }
  file.is_ready.store(true, std::memory_order_release);
  return 0;
}

}  // namespace

std::shared_ptr<SharedContainer> known_container(int folder) {
  struct stat status {};
  if (::fstat(folder, &status) != 0) return nullptr;
  const std::lock_guard lock(process().lock);
  const auto known = process().containers.find({status.st_dev, status.st_ino});
  return known == process().containers.end() ? nullptr : known->second.lock();
}

void release(OpenFile& file) {
  if (!file.is_live.exchange(false)) return;
  const Inside inside;
  (void)as_guest([&] {
    if (file.container && file.writer != nullptr) (void)file.container->remove_writer(file.writer);
    file.container.reset();
    file.writer = nullptr;
    if (const int fd = file.lock_fd.exchange(-1); fd >= 0) ::close(fd);
    if (file.folder >= 0) {
      remove_holder(*file.shared, file.folder);
      let_go_container(Fd(file.folder));
      file.folder = -1;
    }
    return 0;
  });
  file.is_ready = false;
  file.has_writer = false;
  unmap_placeholder(file.shared);
  file.shared = nullptr;
  file.is_free.store(true, std::memory_order_release);  // last: from here on another thread may have it
}

namespace {

/// One of its descriptors is closed.
void end_record_locks(const OpenFile& file) {
  if (!process().has_record_locks.load(std::memory_order_relaxed)) return;
  const Inside inside;
  (void)as_guest([&] {
    if (file.is_ready.load(std::memory_order_acquire)) (void)file.container->meet_other_nodes();
    const std::lock_guard lock(process().lock);
    process().record_locks.erase({file.shared->device, file.shared->inode});
    process().has_record_locks = !process().record_locks.empty();
    return 0;
  });
}

/// `fd` stands for `file` from now on.
void set(int fd, OpenFile* file) {
  if (static_cast<unsigned>(fd) >= most_fds) return;
  if (file != nullptr) take(*file);
  if (OpenFile* before = open_files[static_cast<unsigned>(fd)].exchange(file); before != nullptr) {
    end_record_locks(*before);
    give_back(*before);
  }
}

/// Of an inherited placeholder. With the process's lock held.
void adopt(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  for (OpenFile* file : process().files)
    if (file->is_live && file->placeholder_inode == status.st_ino) return set(fd, file);
  SharedState* const state = map_placeholder(fd);
  OpenFile* const file = state != nullptr ? new_file() : nullptr;
  if (file == nullptr) {
    if (state != nullptr) unmap_placeholder(state);
    return;
  }
  file->shared = state;
  file->placeholder_inode = status.st_ino;
  file->folder = find_folder(*state);
  if (file->folder >= 0) add_holder(*state, file->folder);
  file->is_live = true;
  set(fd, file);
}

void adopt_inherited() {
  const long folder = sys_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) char entries[2048];
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  for (long got = 0; (got = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
    for (long at = 0; at < got; at += reinterpret_cast<Entry*>(entries + at)->length) {
      const int fd = std::atoi(reinterpret_cast<Entry*>(entries + at)->name);
      char target[64];
      const long length =
          ::syscall(SYS_readlinkat, folder, reinterpret_cast<Entry*>(entries + at)->name, target, sizeof target);
      if (length > 0 && std::string_view(target, static_cast<std::size_t>(length)).starts_with(placeholder_link))
        adopt(fd);
    }
  sys_close(folder);
}

/// The engine of a child begins anew: nothing of its parent's is touched, and its descriptors are closed.
void begin_anew() {
  Process& parents = process();
  auto* own = new (std::nothrow) Process;
  if (own == nullptr) ::_exit(127);
  own->files = parents.files;
  for (OpenFile* file : own->files) {
    if (!file->is_live) continue;
    new (&file->container) std::shared_ptr<SharedContainer>;  // the parent's is not ours to destroy
    file->writer = nullptr;
    file->is_ready = false;
    file->has_writer = false;
    file->references = 0;
    engine_fds.remove(file->folder);
    engine_fds.remove(file->lock_fd);
  }
  for (auto& each : open_files)
    if (OpenFile* file = each.load(std::memory_order_relaxed)) ++file->references;
  engine_fds.for_each([](int fd) { ::close(fd); });
  for (OpenFile* file : own->files) {
    if (!file->is_live) continue;
    if (file->folder >= 0) {
      engine_fds.add(file->folder);
      add_holder(*file->shared, file->folder);
    }
    if (file->lock_fd >= 0) engine_fds.add(file->lock_fd);
  }
  process_of_now = own;
}

__attribute__((constructor(102))) void load() {
  process_of_now = new Process;
  // runtime/common holds the memory at a fork, after us: so it must have been asked something first.
  (void)runtime::is_disabled();
  ::pthread_atfork([] { process().lock.lock(); }, [] { process().lock.unlock(); }, begin_anew);
  const Inside inside;
  (void)as_guest([] {
    const std::lock_guard lock(process().lock);
    adopt_inherited();
    return 0;
  });
}

}  // namespace

void say_failure(const std::string& message) { runtime::say(message); }

bool is_stray_child() { return process_of_now != nullptr && ::getpid() != process().pid; }

void finish_all() {
  const Inside inside;
  (void)as_guest([] {
    const std::lock_guard lock(process().lock);
    for (OpenFile* file : process().files)
      if (file->is_live && file->has_writer) (void)file->container->close_writers();
    // The kernel closes what the program leaves open, but removes nothing of it.
    for (OpenFile* file : process().files)
      if (file->is_live && file->folder >= 0) remove_holder(*file->shared, file->folder);
    for (OpenFile* file : process().files)
      if (file->is_live && file->folder >= 0 && is_unlinked(file->folder))
        let_go_container(Fd(std::exchange(file->folder, -1)));
    return 0;
  });
}

void leave_folders_open(bool left) {
  if (process_of_now == nullptr || is_stray_child()) return;
  const Inside inside;
  (void)as_guest([&] {
    const std::lock_guard lock(process().lock);
    for (const OpenFile* file : process().files)
      if (file->is_live && file->folder >= 0 && !(left && is_in_place(*file->shared)))
        ::fcntl(file->folder, F_SETFD, left ? 0 : FD_CLOEXEC);
    return 0;
  });
}

int make_ready(OpenFile& file) {
  if (file.is_ready.load(std::memory_order_acquire)) return 0;
  return as_guest([&] { return find_container(file); });
}

int make_writer(OpenFile& file) {
  if (file.has_writer.load(std::memory_order_acquire)) return 0;
  return as_guest([&] {
    if (const int failure = find_container(file); failure != 0) return failure;
    {
      const std::lock_guard lock(process().lock);
      if (file.writer == nullptr) file.writer = file.container->add_writer();
    }
    if (const int failure = file.container->prepare(*file.writer); failure != 0) return failure;
    file.has_writer.store(true, std::memory_order_release);
    return 0;
  });
}

int open_container(int folder, int flags) {
  struct stat status {};
  SharedState* state = nullptr;
  const bool is_held = ::fstat(folder, &status) == 0 && hold_container(folder);
  const int fd = is_held ? make_placeholder((flags & O_CLOEXEC) != 0, state) : -1;
  if (fd < 0) {
    const int failure = is_held ? errno : ENOENT;  // it is being removed
    ::close(folder);
    errno = failure;
    return -1;
  }
  state->flags = flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  state->device = status.st_dev;
  state->inode = status.st_ino;
  (void)!::readlink(FdPath(folder).text, state->path.data(), state->path.size() - 1);
  OpenFile* file = nullptr;
  int failure = as_guest([&] {
    {
      const std::lock_guard lock(process().lock);
      file = new_file();
      if (file == nullptr) return ENOMEM;
      file->shared = state;
      file->folder = folder;
      add_holder(*state, folder);
      file->placeholder_inode = inode_of(fd);
      take(*file);  // first: a call that meant what this was before may let it go in between
      file->is_live = true;
    }
    if (const int opened = find_container(*file); opened != 0) return opened;
    if ((flags & O_TRUNC) != 0) return file->container->truncate(nullptr, 0);
    return 0;
  });
  if (failure == 0 && static_cast<unsigned>(fd) >= most_fds) failure = EMFILE;
  if (failure == 0) set(fd, file);
  if (file != nullptr) {
    give_back(*file);
  } else {
    unmap_placeholder(state);
    ::close(folder);
  }
  if (failure == 0) return fd;
  sys_close(fd);
  errno = failure;
  return -1;
}

int open_for_locks(const OpenFile& file) {
  if (file.folder < 0) {
    errno = EIO;
    return -1;
  }
  const char* const manifest = container_manifest_name.data();
  const int made = ::openat(file.folder, manifest, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  return made >= 0 ? made : ::openat(file.folder, manifest, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

int record_lock_fd(const OpenFile& file) {
  const std::lock_guard lock(process().lock);
  Fd& known = process().record_locks[{file.shared->device, file.shared->inode}];
  if (!known) known = Fd(open_for_locks(file));
  process().has_record_locks = true;
  return known.get();
}

void set_looked_at(const OpenFile* file) {
  (void)as_guest([&] {
    const std::lock_guard lock(process().lock);
    process().looked_at = file != nullptr ? file->container : nullptr;
    return 0;
  });
}

void look_for_other_nodes() {
  const Inside inside;
  if (!inside || process_of_now == nullptr || is_stray_child()) return;
  (void)as_guest([] {
    std::vector<std::shared_ptr<SharedContainer>> open;
    {
      const std::lock_guard lock(process().lock);
      for (const auto& [place, container] : process().containers)
        if (auto live = container.lock()) open.push_back(std::move(live));
    }
    for (const auto& container : open) (void)container->look_for_other_nodes();
    return 0;
  });
}

void follow(int fd, int of) {
  const InUse file(of);
  if (is_ours(fd) || file) set(fd, file ? &*file : nullptr);
}

void let_go(int fd) { set(fd, nullptr); }

}  // namespace iosig::preload
