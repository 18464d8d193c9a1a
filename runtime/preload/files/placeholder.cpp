#include "preload/files/placeholder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>

#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/container_directory.h"
#include "preload/engine/engine_fds.h"
#include "preload/files/raw_calls.h"

namespace iosig::preload {
namespace {

constexpr const char* placeholder_name = "iosig-container";
constexpr int work_directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::uint64_t holder(int directory) {
  return static_cast<std::uint64_t>(::getpid()) << 32 | static_cast<std::uint32_t>(directory);
}

pid_t process_of(std::uint64_t holder) { return static_cast<pid_t>(holder >> 32); }

SharedState* map_all(long fd) {
  void* const mapped = ::mmap(nullptr, placeholder_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<SharedState*>(mapped);
}

bool is_its(const struct stat& status, const SharedState& state) {
  return status.st_dev == state.device && status.st_ino == state.inode;
}

bool is_its(int directory, const SharedState& state) {
  struct stat status {};
  return ::fstat(directory, &status) == 0 && is_its(status, state);
}

/// Returns `directory` if it is the container's and can be held, else closes it and returns -1.
int if_it_is(int directory, const SharedState& state) {
  if (directory < 0 || (is_its(directory, state) && hold_container(directory))) return directory;
  ::close(directory);
  return -1;
}

/// Finds a container that was renamed, or removed while it was open: it has another name in the same parent directory.
int find_beside(const SharedState& state) {
  const int parent = ::open(split_path(state.path.data()).directory.c_str(), work_directory_flags);
  DIR* const names = parent < 0 ? nullptr : ::fdopendir(parent);
  if (names == nullptr) {
    if (parent >= 0) ::close(parent);
    return -1;
  }
  int found = -1;
  while (const dirent* const entry = found < 0 ? ::readdir(names) : nullptr)
    if (entry->d_ino == state.inode) found = if_it_is(::openat(parent, entry->d_name, work_directory_flags), state);
  ::closedir(names);
  return found;
}

}  // namespace

FdPath::FdPath(long fd) { *fmt::format_to(text, "/proc/self/fd/{}", fd) = '\0'; }

int make_placeholder(bool closes_on_exec, SharedState*& state) {
  const int memory = static_cast<int>(::syscall(SYS_memfd_create, placeholder_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory < 0) return -1;
  const auto give_up = [&] {
    const int failure = errno;
    sys_close(memory);
    errno = failure;
    return -1;
  };
  if (::syscall(SYS_ftruncate, memory, placeholder_bytes) != 0) return give_up();
  state = map_all(memory);
  if (state == nullptr) return give_up();
  // A process that bypasses this library can only append, because the descriptor is opened with O_APPEND below. The
  // seal makes appending fail, too.
  ::syscall(SYS_fcntl, memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK);
  const long closed = sys_open(FdPath(memory).text, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (closed < 0) {
    unmap_placeholder(state);
    return give_up();
  }
  ::syscall(SYS_dup3, closed, memory, closes_on_exec ? O_CLOEXEC : 0);
  sys_close(closed);
  new (state) SharedState;
  return memory;
}

SharedState* map_placeholder(int fd) {
  const long memory = sys_open(FdPath(fd).text, O_RDWR | O_CLOEXEC);
  if (memory < 0) return nullptr;
  struct stat status {};
  const bool is_whole =
      ::fstat(static_cast<int>(memory), &status) == 0 && static_cast<std::size_t>(status.st_size) == placeholder_bytes;
  SharedState* const state = is_whole ? map_all(memory) : nullptr;
  sys_close(memory);
  if (state == nullptr || state->magic == SharedState::expected_magic) return state;
  unmap_placeholder(state);
  return nullptr;
}

void unmap_placeholder(SharedState* state) { ::munmap(state, placeholder_bytes); }

void add_holder(SharedState& state, int directory) {
  const std::uint64_t own = holder(directory);
  const auto take = [&](auto is_given_up) {
    for (auto& each : state.holders) {
      std::uint64_t known = each.load(std::memory_order_relaxed);
      if (is_given_up(known) && each.compare_exchange_strong(known, own)) return true;
    }
    return false;
  };
  if (take([](std::uint64_t known) { return known == 0; })) return;
  (void)take([](std::uint64_t known) { return ::kill(process_of(known), 0) != 0 && errno == ESRCH; });
}

void remove_holder(SharedState& state, int directory) {
  for (auto& each : state.holders) {
    std::uint64_t own = holder(directory);
    if (each.compare_exchange_strong(own, 0)) return;
  }
}

bool is_in_place(const SharedState& state) {
  struct stat status {};
  return ::lstat(state.path.data(), &status) == 0 && is_its(status, state);
}

int find_directory(const SharedState& state, std::vector<int>& inherited) {
  const auto own = std::ranges::find_if(inherited, [&](int fd) { return is_its(fd, state); });
  if (own != inherited.end()) {
    const int directory = *own;
    inherited.erase(own);
    ::fcntl(directory, F_SETFD, FD_CLOEXEC);
    engine_fds.add(directory);
    return directory;
  }
  if (const int found = if_it_is(::open(state.path.data(), work_directory_flags), state); found >= 0) return found;
  for (const auto& each : state.holders) {
    const std::uint64_t known = each.load(std::memory_order_relaxed);
    if (known == 0) continue;
    const std::string name = fmt::format("/proc/{}/fd/{}", process_of(known), static_cast<std::uint32_t>(known));
    if (const int found = if_it_is(::open(name.c_str(), work_directory_flags), state); found >= 0) return found;
  }
  return find_beside(state);
}

}  // namespace iosig::preload
