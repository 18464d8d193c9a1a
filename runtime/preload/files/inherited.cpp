// Containers across execve(2): finds the open containers that this program inherited, and leaves its own to the next
// program.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "iosig/container/layout/container_directory.h"
#include "preload/files/process_files.h"
#include "preload/files/raw_calls.h"

namespace iosig::preload {
namespace {

/// Whether a program that is executed now inherits a descriptor of the file.
bool is_inherited(const OpenFile& file) {
  for (int fd = 0; fd <= last_fd; ++fd)
    if (open_files[static_cast<unsigned>(fd)] == &file && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return true;
  return false;
}

/// Whether `fd` is open on the container's manifest and is not yet one of the engine's descriptors.
bool bears_locks(int fd, const OpenFile& file) {
  struct stat status {
  }, manifest{};
  return fd >= 0 && !engine_fds.has(fd) && ::fstat(fd, &status) == 0 &&
         ::fstatat(file.directory, container_manifest_name.data(), &manifest, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_dev == manifest.st_dev && status.st_ino == manifest.st_ino;
}

/// Whether `fd` is open on the directory of a container.
bool is_left_directory(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) &&
         ::faccessat(fd, container_manifest_name.data(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/// Opens the container of the inherited placeholder `fd`. `directories`: the inherited descriptors of containers'
/// directories. The caller holds the process's lock.
void adopt(int fd, std::vector<int>& directories) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  for (OpenFile* file : process().files)
    if (file->is_live && file->placeholder_inode == status.st_ino) {
      (void)set(fd, file);
      return;
    }
  SharedState* const state = map_placeholder(fd);
  OpenFile* const file = state != nullptr ? new_file() : nullptr;
  if (file == nullptr) {
    if (state != nullptr) unmap_placeholder(state);
    return;
  }
  file->shared = state;
  file->placeholder_inode = status.st_ino;
  file->directory = find_directory(*state, directories);
  if (file->directory >= 0) add_holder(*state, file->directory);
  if (const int known = state->lock_fd; file->directory >= 0 && bears_locks(known, *file)) {
    ::fcntl(known, F_SETFD, FD_CLOEXEC);
    engine_fds.add(known);
    file->lock_fd = known;
  }
  file->is_live = true;
  set(fd, file);
}

/// Calls visit(name, directory) for each name in /proc/self/fd, which is open as `directory`.
template <class Visit>
void for_each_fd(Visit visit) {
  const long directory = sys_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  alignas(8) char entries[1024];
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  for (long got = 0; (got = ::syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0;)
    for (long at = 0; at < got; at += reinterpret_cast<Entry*>(entries + at)->length) {
      const char* const name = reinterpret_cast<Entry*>(entries + at)->name;
      if (name[0] != '.' && std::atoi(name) != directory) visit(name, static_cast<int>(directory));
    }
  sys_close(directory);
}

}  // namespace

bool may_have_inherited() {
  const auto is_suspect = [](int fd, long seals) {
    return (seals >= 0 && (seals & F_SEAL_SEAL) == 0) || (fd >= 10 && fd >= min_engine_fd());
  };
  // Only files in memory have seals, and those of a tmpfs cannot get any.
  const auto seals_of = [](int fd) { return ::syscall(SYS_fcntl, fd, F_GET_SEALS, 0); };
  // The kernel tells the number of descriptors as the size of this directory since Linux 6.2. Most programs have few,
  // with small numbers, and listing them costs more than asking for each.
  constexpr int few = 24;
  struct stat status {};
  if (::stat("/proc/self/fd", &status) != 0) return true;
  off_t left = status.st_size;
  for (int fd = 0; fd < few && left > 0; ++fd) {
    const long seals = seals_of(fd);
    if (seals < 0 && errno == EBADF) continue;
    if (is_suspect(fd, seals)) return true;
    --left;
  }
  bool found = false;
  if (left > 0 || status.st_size == 0)
    for_each_fd([&](const char* name, int /*directory*/) {
      const int fd = std::atoi(name);
      found = found || is_suspect(fd, seals_of(fd));
    });
  return found;
}

void adopt_inherited() {
  std::vector<int> placeholders, directories;
  std::vector<int> bearers;  ///< descriptors that bear locks
  for_each_fd([&](const char* entry, int directory) {
    const int fd = std::atoi(entry);
    char target[PATH_MAX];
    const long length = ::syscall(SYS_readlinkat, directory, entry, target, sizeof target);
    const std::string_view name(target, length > 0 ? static_cast<std::size_t>(length) : 0);
    if (name.starts_with(placeholder_link)) placeholders.push_back(fd);
    if (name.ends_with(container_manifest_name)) bearers.push_back(fd);
    if (fd >= min_engine_fd() && !engine_fds.has(fd) && is_left_directory(fd)) directories.push_back(fd);
  });
  for (const int fd : placeholders) adopt(fd, directories);
  bearers.insert(bearers.end(), directories.begin(), directories.end());
  for (const int fd : bearers)  // those that remain belong to files that were closed before this program began
    if (fd >= min_engine_fd() && !engine_fds.has(fd)) sys_close(fd);
}

void leave_open(bool left) {
  if (process_of_now == nullptr) return;
  const runtime::ErrnoKept kept;
  const auto mark = [&](int fd, bool stays) {
    if (fd >= 0) ::fcntl(fd, F_SETFD, left && stays ? 0 : FD_CLOEXEC);
  };
  if (is_stray_child()) {  // after vfork the child shares its parent's tables, but has descriptors of its own
    const std::unique_lock lock(process().lock, std::try_to_lock);
    if (!lock) return;
    for (const OpenFile* file : process().files) {
      if (!file->is_live) continue;
      const bool stays = left && is_inherited(*file);
      mark(file->directory, stays);
      mark(file->lock_fd, stays);
    }
    return;
  }
  const EngineGuard inside;
  (void)run_isolated_step([&] {
    const std::lock_guard lock(process().lock);
    for (const OpenFile* file : process().files) {
      if (!file->is_live) continue;
      // The directory stays open, too: it holds the container while the new program starts.
      const bool stays = left && is_inherited(*file);
      mark(file->directory, stays);
      mark(file->lock_fd, stays);
    }
    return 0;
  });
}

}  // namespace iosig::preload
