// The containers of the C interface (include/iosig/iosig.h): handles of the engine's SharedContainer.
//
// Rare calls run isolated. Reads and writes run on the caller's own stack and make no system calls except those that
// transfer the data.
#include "iosig/container/admin/container.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "host/binding.h"
#include "host/diagnostics.h"
#include "host/process.h"
#include "host/run_isolated.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/shared/shared_container.h"
#include "iosig/iosig.h"

using namespace iosig;

struct iosig_container {
  Fd directory;  ///< held: if the container is removed, its last holder deletes it
  std::shared_ptr<SharedContainer> container;
  OpenWriter* writer = nullptr;  ///< null: for reading only
  bool reads = false;
  std::atomic<int> calls{0};  ///< that use it at this moment
  bool is_inherited = false;  ///< a child's copy
  bool is_torn = false;       ///< a child's copy that was made during such a call
};

namespace {

/// The open handles, for the end of the process and for its children. Made when the library is loaded and never
/// destroyed: other threads may still use some of them.
struct OpenHandles {
  std::mutex mutex;
  std::set<iosig_container*> all;
};
std::atomic<bool> has_opened{false};
OpenHandles& open_handles() {
  static OpenHandles* const handles = [] {
    // fork() acquires the locks in the reverse order of registration. The memory lock, which process.cpp registers,
    // must be acquired after this one: this call makes it be registered first.
    (void)runtime::is_disabled();
    constexpr auto hold = [] {
      runtime::block_signals_at_fork();
      open_handles().mutex.lock();
    };
    constexpr auto let_go = [] {
      open_handles().mutex.unlock();
      runtime::restore_signals_at_fork();
    };
    constexpr auto let_go_in_child = [] {
      for (iosig_container* handle : open_handles().all) {
        handle->is_inherited = true;
        handle->is_torn |= handle->calls.load() != 0;
      }
      open_handles().mutex.unlock();
      runtime::restore_signals_at_fork();
    };
    ::pthread_atfork(hold, let_go, let_go_in_child);
    alignas(OpenHandles) static std::byte room[sizeof(OpenHandles)];  // static: allocation could fail here
    return new (room) OpenHandles;
  }();
  return *handles;
}

__attribute__((constructor)) void make_open_handles() { (void)open_handles(); }

/// Marks the handle as in use while it lives. A fork meanwhile copies the engine's objects in the middle of a change,
/// with locks that no thread of the child releases.
class InUse {
 public:
  explicit InUse(iosig_container& handle) : handle_(handle) { handle_.calls.fetch_add(1); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() { handle_.calls.fetch_sub(1); }

 private:
  iosig_container& handle_;
};

/// At the end of the process: deletes unlinked containers that the program leaves open. The kernel closes their
/// descriptors but does not delete them.
__attribute__((destructor)) void let_go_unlinked() {
  if (!has_opened.load(std::memory_order_relaxed)) return;
  (void)runtime::run_isolated([] {
    OpenHandles& handles = open_handles();
    const std::unique_lock lock(handles.mutex, std::try_to_lock);
    if (!lock) return;
    for (iosig_container* handle : handles.all)
      if (is_unlinked(handle->directory.get())) let_go_container(std::move(handle->directory));
  });
}

void remember(const std::string& message) { runtime::set_last_error(message); }

/// Converts an error of the engine to errno and records its message.
int errno_for(const Error& error) {
  remember(error.message);
  return errno_of(error);
}

/// Converts `value`, a result or -errno, to the return value of the call and sets errno.
std::int64_t answer(std::int64_t value, int errno_before) {
  errno = value < 0 ? static_cast<int>(-value) : errno_before;
  return value < 0 ? -1 : value;
}

/// Runs step() isolated. Returns its value, or -1 with errno if step() returns -errno.
template <class Step>
std::int64_t run_isolated_for_value(Step step) {
  const int before = errno;
  const runtime::ThreadState* const state = runtime::thread_state();
  std::int64_t value = state != nullptr && state->inside ? -EDEADLK : -ENOMEM;
  if (!runtime::run_isolated([&] {
        value = -ENOMEM;
        value = step();
      }))
    runtime::set_last_error(
        "called from within a call of this thread, in a child that fork did not make, or out of memory");
  return answer(value, before);
}

/// The same on the caller's own stack. Meanwhile a signal handler of the thread cannot run isolated work.
template <class Step>
std::int64_t answer_here(Step step) {
  const int before = errno;
  runtime::ThreadState* const state = runtime::thread_state();
  if (state == nullptr || state->inside) return answer(state == nullptr ? -ENOMEM : -EDEADLK, before);
  state->inside = true;
  std::int64_t value = -ENOMEM;
  try {
    value = step();
  } catch (...) {  // out of memory
    value = -ENOMEM;
  }
  state->inside = false;
  return answer(value, before);
}

/// Whether a call may use the handle; records why not.
bool is_usable(const iosig_container* handle) {
  if (handle == nullptr) return false;
  if (handle->is_torn)
    remember("the parent was using the handle in another thread at the fork: close it and open the container again");
  return !handle->is_torn;
}

/// Makes a container at `path`. Returns 0 or errno; EEXIST if the path exists.
int make(const char* path, unsigned mode, const char* signature) {
  ContainerOptions options;
  options.mode = mode & 07777;
  if (signature != nullptr) {
    auto declared = runtime::parsed(signature);
    if (!declared) {
      remember(declared.error().message);
      return EINVAL;
    }
    if (!declared->container_targets) declared->container_targets = 1;
    auto targets = runtime::targets_for(*declared, path);
    if (targets)
      options.targets = *std::move(targets);
    else
      runtime::say_once("targets", targets.error().message + "; its data stay in the container");
  }
  const auto made = create_container(path, options);
  if (made) return 0;
  return errno_of(made.error()) == EEXIST ? EEXIST : errno_for(made.error());
}

/// Opens and holds the directory of the container at `path`. Returns 0 or errno.
int open_held(const char* path, Fd& directory) {
  for (int tries_left = 1000;; --tries_left) {
    directory = Fd(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int failure = directory ? 0 : errno == ENOTDIR ? ENOTSUP : errno;
    if (failure == 0 && ::faccessat(directory.get(), container_manifest_name.data(), F_OK, AT_SYMLINK_NOFOLLOW) != 0)
      failure = ENOTSUP;
    if (failure == 0 && hold_container(directory.get())) return 0;
    if (failure == 0) failure = errno;
    // Another process may have removed or replaced the container meanwhile: try again with the path's new state.
    struct stat opened {
    }, there{};
    const bool is_there = !directory || (::fstat(directory.get(), &opened) == 0 && ::stat(path, &there) == 0 &&
                                         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino);
    if (!is_there && tries_left > 0) continue;
    remember(failure == ENOTSUP ? fmt::format("'{}' is not a container", printable(path))
                                : system_failure("open", path, failure).value().message);
    return failure;
  }
}

int open_container(const char* path, int flags, unsigned mode, const char* signature, iosig_container& handle) {
  const bool creates = (flags & O_CREAT) != 0, writes = (flags & O_ACCMODE) != O_RDONLY;
  Fd directory;
  for (int tries_left = 1000;; --tries_left) {
    if (creates)
      if (const int failure = make(path, mode, signature); failure != 0 && (failure != EEXIST || (flags & O_EXCL) != 0))
        return failure;
    const int failure = open_held(path, directory);
    if (failure == 0) break;
    if (failure != ENOENT || !creates || tries_left == 0) return failure;  // ENOENT: removed meanwhile
  }
  auto opened = SharedContainer::open(directory.get(), remember);
  if (!opened) return errno_for(opened.error());
  handle.directory = std::move(directory);
  handle.container = *std::move(opened);
  handle.reads = (flags & O_ACCMODE) != O_WRONLY;
  if (writes) handle.writer = handle.container->writers().add();
  return writes && (flags & O_TRUNC) != 0 ? handle.container->truncate(nullptr, 0) : 0;
}

/// Returns 0 if `name` is a container, else errno.
int refuse_if_no_container(const NameAt& name, std::string_view doing) {
  switch (kind_at(name)) {
    case NameKind::container: return 0;
    case NameKind::none: {
      const int failure = errno;
      remember(system_failure(doing, name.path, failure).value().message);
      return failure;
    }
    default: remember(fmt::format("'{}' is not a container", printable(name.path))); return ENOTSUP;
  }
}

/// Returns 0 or errno, and records the message of a failure.
int errno_of(const NameResult& done, std::string_view doing, const NameAt& name) {
  if (done) return 0;
  remember(as_error(done.error(), doing, name.path).value().message);
  return done.error().number;
}

}  // namespace

iosig_container* iosig_container_open(const char* path, int flags, unsigned mode, const char* signature) {
  iosig_container* handle = nullptr;
  const auto failed = run_isolated_for_value([&]() -> std::int64_t {
    if (path == nullptr) return -EFAULT;
    if (runtime::is_disabled()) return -ENOSYS;
    auto made = std::make_unique<iosig_container>();
    if (const int failure = open_container(path, flags, mode, signature, *made); failure != 0) return -failure;
    const std::lock_guard lock(open_handles().mutex);
    open_handles().all.insert(made.get());
    handle = made.release();
    has_opened.store(true, std::memory_order_relaxed);
    return 0;
  });
  return failed == 0 ? handle : nullptr;
}

int iosig_container_close(iosig_container* container) {
  if (container == nullptr) return 0;
  return static_cast<int>(run_isolated_for_value([&]() -> std::int64_t {
    {
      const std::lock_guard lock(open_handles().mutex);
      open_handles().all.erase(container);
    }
    if (container->is_torn) {  // its objects cannot even be destroyed
      let_go_container(std::move(container->directory));
      return 0;
    }
    const std::unique_ptr<iosig_container> own(container);
    const int failure = own->writer != nullptr ? own->container->writers().remove(own->writer) : 0;
    own->container.reset();
    let_go_container(std::move(own->directory));
    return own->is_inherited ? 0 : -failure;  // the parent completes what it has written
  }));
}

int64_t iosig_container_pread(iosig_container* container, void* buffer, size_t bytes, int64_t offset) {
  return answer_here([&]() -> std::int64_t {
    if (!is_usable(container) || !container->reads) return -EBADF;
    const InUse now(*container);
    return container->container->view().read(offset, {static_cast<std::byte*>(buffer), bytes}, IfLost::stop);
  });
}

int64_t iosig_container_pwrite(iosig_container* container, const void* buffer, size_t bytes, int64_t offset) {
  return answer_here([&]() -> std::int64_t {
    if (!is_usable(container) || container->writer == nullptr) return -EBADF;
    if (offset < 0) return -EINVAL;
    if (bytes == 0) return 0;
    const InUse now(*container);
    return container->container->writers().write(*container->writer, offset,
                                                 {static_cast<const std::byte*>(buffer), bytes}, false);
  });
}

int64_t iosig_container_append(iosig_container* container, const void* buffer, size_t bytes, int64_t* offset) {
  return answer_here([&]() -> std::int64_t {
    if (!is_usable(container) || container->writer == nullptr) return -EBADF;
    if (bytes == 0) return 0;
    const InUse now(*container);
    std::int64_t at = 0;
    const std::int64_t done = container->container->writers().write(
        *container->writer, at, {static_cast<const std::byte*>(buffer), bytes}, true);
    if (done >= 0 && offset != nullptr) *offset = at;
    return done;
  });
}

int64_t iosig_container_size(iosig_container* container) {
  return run_isolated_for_value([&]() -> std::int64_t {
    struct stat status {};
    if (!is_usable(container)) return -EBADF;
    const InUse now(*container);
    if (const int failure = container->container->status().get(status, 0); failure != 0) return -failure;
    return status.st_size;
  });
}

int iosig_container_truncate(iosig_container* container, int64_t size) {
  return static_cast<int>(run_isolated_for_value([&]() -> std::int64_t {
    if (!is_usable(container)) return -EBADF;
    if (container->writer == nullptr || size < 0) return -EINVAL;
    const InUse now(*container);
    return -container->container->truncate(container->writer, size);
  }));
}

int iosig_container_sync(iosig_container* container) {
  return static_cast<int>(run_isolated_for_value([&]() -> std::int64_t {
    if (!is_usable(container)) return -EBADF;
    const InUse now(*container);
    return -container->container->writers().sync();
  }));
}

int iosig_container_unlink(const char* path) {
  return static_cast<int>(run_isolated_for_value([&]() -> std::int64_t {
    if (path == nullptr) return -EFAULT;
    const NameAt name{AT_FDCWD, std::string(without_trailing_slashes(path))};
    if (const int failure = refuse_if_no_container(name, "remove"); failure != 0) return -failure;
    return -errno_of(unlink_at(name), "remove", name);
  }));
}

int iosig_container_rename(const char* from, const char* to) {
  return static_cast<int>(run_isolated_for_value([&]() -> std::int64_t {
    if (from == nullptr || to == nullptr) return -EFAULT;
    const NameAt source{AT_FDCWD, std::string(without_trailing_slashes(from))};
    if (const int failure = refuse_if_no_container(source, "rename"); failure != 0) return -failure;
    return -errno_of(rename_at(source, {AT_FDCWD, std::string(without_trailing_slashes(to))}), "rename", source);
  }));
}
