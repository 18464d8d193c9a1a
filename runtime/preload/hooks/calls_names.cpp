// Calls on names and directories: unlink(2), rename(2), link(2), mkdir(2), readdir(3), inotify(7) and their variants.

#include <dirent.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "iosig/container/layout/container_directory.h"
#include "preload/files/answer.h"
#include "preload/files/opening.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"

namespace iosig::preload {
namespace {

bool is_not_empty(int failure) { return failure == ENOTEMPTY || failure == EEXIST; }

/// Whether a call failed because a name is a directory: of a container, perhaps, that was not there a moment ago.
bool is_for_kind(int failure) { return failure == EISDIR || failure == ENOTDIR; }

/// Runs `step`, which returns 0 or errno, in the engine and returns its result as a call does.
template <class Step>
int answer_from_engine(Step step) {
  const int before = errno;
  const EngineGuard inside;
  return static_cast<int>(answer(inside ? -step() : -EDEADLK, before));
}

int remove_name(int directory, const char* path, int flags) {
  if (is_taken_for_directory(directory, path)) return -1;
  if (path == nullptr || !is_container_not_link_at(directory, path)) {
    const int done = real().unlinkat(directory, path, flags);
    if (done != 0 && flags == AT_REMOVEDIR && is_not_empty(errno) && are_containers_files())
      return answer_from_engine([&] { return remove_directory_at(directory, path); });
    if (done != 0 && flags == 0 && errno == EISDIR && are_containers_files())
      return answer_from_engine([&] { return unlink_container_at(directory, path); });
    return as_below_file(done, directory, path);
  }
  return answer_from_engine(
      [&] { return (flags & AT_REMOVEDIR) != 0 ? ENOTDIR : unlink_container_at(directory, path); });
}

int rename_name(int from, const char* path, int to, const char* name, unsigned flags) {
  if (is_taken_for_directory(from, path) || is_taken_for_directory(to, name) || would_lie_in_container(to, name))
    return -1;
  const bool meets_container = is_string(path) && is_string(name) &&
                               (is_container_not_link_at(from, path) || is_container_not_link_at(to, name));
  const auto by_engine = [&] { return rename_container_at(from, path, to, name, flags); };
  if (meets_container) return answer_from_engine(by_engine);
  const int done = flags == 0 ? real().renameat(from, path, to, name) : real().renameat2(from, path, to, name, flags);
  if (done != 0 && flags == 0 && (is_not_empty(errno) || (is_for_kind(errno) && are_containers_files())))
    return answer_from_engine(by_engine);
  return as_below_file(as_below_file(done, from, path), to, name);
}

int link_name(int from, const char* path, int to, const char* name, int flags) {
  if (is_taken_for_directory(from, path) || would_lie_in_container(to, name)) return -1;
  if (path == nullptr || !is_container_not_link_at(from, path))
    return as_below_file(as_below_file(real().linkat(from, path, to, name, flags), from, path), to, name);
  // A container can have only one name. The kernel refuses a hard link to its directory with EPERM, after the checks
  // that it makes for any file (EEXIST, ENOENT, EFAULT, ...).
  return as_below_file(real().linkat(from, path, to, name, flags), to, name);
}

/// Changes an entry of the open `directory` to what programs may see: a container becomes a regular file. Returns false
/// for a hidden name.
bool show_entry(dirent& entry, int directory) {
  if (!are_containers_files()) return true;
  if (is_hidden_name(entry.d_name)) return false;
  if (entry.d_type == DT_DIR && entry.d_name[0] != '.' && is_container_at(directory, entry.d_name))
    entry.d_type = DT_REG;
  return true;
}

/// Returns the next entry that programs may see.
dirent* next_entry(DIR* directory) {
  for (;;) {
    dirent* const entry = real().readdir(directory);
    if (entry == nullptr || show_entry(*entry, ::dirfd(directory))) return entry;
  }
}

/// Implements scandirat(3). libc's scandir() reads the directory through internal calls that cannot be intercepted;
/// therefore it reads all entries here, and this function filters them.
int scan(int parent, const char* path, dirent*** names, int (*filter)(const dirent*),
         int (*compare)(const dirent**, const dirent**)) {
  if (path != nullptr && is_container_at(parent, path)) {
    errno = ENOTDIR;
    return -1;
  }
  dirent** all = nullptr;
  const int count = real().scandirat(parent, path, &all, nullptr, nullptr);
  if (count < 0) return as_below_file(count, parent, path);
  int shown = 0, kept = 0;
  {
    const CancellationOff uncancelled;
    const int directory = real().openat(parent, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int n = 0; n < count; ++n)
      if (show_entry(*all[n], directory))
        all[shown++] = all[n];
      else
        std::free(all[n]);
    if (directory >= 0) (void)real().close(directory);
  }
  for (int n = 0; n < shown; ++n)  // the program's functions may throw: only memory is lost then, as in libc's own
    if (filter == nullptr || filter(all[n]) != 0)
      all[kept++] = all[n];
    else
      std::free(all[n]);
  if (compare != nullptr)
    std::qsort(all, static_cast<std::size_t>(kept), sizeof(void*),
               reinterpret_cast<int (*)(const void*, const void*)>(compare));
  *names = all;
  return kept;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

int hook::unlinkat(int directory, const char* path, int flags) { return remove_name(directory, path, flags); }
int hook::unlink(const char* path) { return remove_name(AT_FDCWD, path, 0); }
int hook::rmdir(const char* path) { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }
int hook::remove(const char* path) {
  if (path != nullptr && is_container_not_link_at(AT_FDCWD, path)) return remove_name(AT_FDCWD, path, 0);
  if (is_taken_for_directory(AT_FDCWD, path)) return -1;
  const int done = real().remove(path);
  if (done != 0 && path != nullptr && is_not_empty(errno))
    return remove_name(AT_FDCWD, path, is_container_not_link_at(AT_FDCWD, path) ? 0 : AT_REMOVEDIR);
  return as_below_file(done, AT_FDCWD, path);
}

int hook::mkdirat(int directory, const char* path, mode_t mode) {
  return would_lie_in_container(directory, path)
             ? -1
             : as_below_file(real().mkdirat(directory, path, mode), directory, path);
}
int hook::mkdir(const char* path, mode_t mode) { return hook::mkdirat(AT_FDCWD, path, mode); }
int hook::mknodat(int directory, const char* path, mode_t mode, dev_t device) {
  return would_lie_in_container(directory, path)
             ? -1
             : as_below_file(real().mknodat(directory, path, mode, device), directory, path);
}
int hook::mknod(const char* path, mode_t mode, dev_t device) { return hook::mknodat(AT_FDCWD, path, mode, device); }
int hook::mkfifoat(int directory, const char* path, mode_t mode) {
  return would_lie_in_container(directory, path)
             ? -1
             : as_below_file(real().mkfifoat(directory, path, mode), directory, path);
}
int hook::mkfifo(const char* path, mode_t mode) { return hook::mkfifoat(AT_FDCWD, path, mode); }
int hook::symlinkat(const char* to, int directory, const char* path) {
  return would_lie_in_container(directory, path)
             ? -1
             : as_below_file(real().symlinkat(to, directory, path), directory, path);
}
int hook::symlink(const char* to, const char* path) { return hook::symlinkat(to, AT_FDCWD, path); }
int hook::chdir(const char* path) {
  if (path == nullptr || !is_container_at(AT_FDCWD, path)) return as_below_file(real().chdir(path), AT_FDCWD, path);
  errno = ENOTDIR;
  return -1;
}

int hook::rename(const char* from, const char* to) { return rename_name(AT_FDCWD, from, AT_FDCWD, to, 0); }
int hook::renameat(int from, const char* path, int to, const char* name) {
  return rename_name(from, path, to, name, 0);
}
int hook::renameat2(int from, const char* path, int to, const char* name, unsigned flags) {
  return rename_name(from, path, to, name, flags);
}

int hook::link(const char* from, const char* to) { return link_name(AT_FDCWD, from, AT_FDCWD, to, 0); }
int hook::linkat(int from, const char* path, int to, const char* name, int flags) {
  return link_name(from, path, to, name, flags);
}

DIR* hook::opendir(const char* path) {
  if (path == nullptr || !is_container_at(AT_FDCWD, path)) {
    DIR* const opened = real().opendir(path);
    if (opened == nullptr) (void)as_below_file(-1, AT_FDCWD, path);
    return opened;
  }
  errno = ENOTDIR;
  return nullptr;
}
DIR* hook::fdopendir(int fd) {
  if (!is_ours(fd)) return real().fdopendir(fd);
  errno = ENOTDIR;
  return nullptr;
}
dirent* hook::readdir(DIR* directory) { return next_entry(directory); }
int hook::closedir(DIR* directory) { return real().closedir(directory); }
int hook::scandir(const char* path, dirent*** names, int (*filter)(const dirent*),
                  int (*compare)(const dirent**, const dirent**)) {
  return scan(AT_FDCWD, path, names, filter, compare);
}
int hook::scandirat(int parent, const char* path, dirent*** names, int (*filter)(const dirent*),
                    int (*compare)(const dirent**, const dirent**)) {
  return scan(parent, path, names, filter, compare);
}

// inotify would report changes of the container's parts. With ENOSPC programs poll instead (tail -f), or report that
// they cannot watch the file.
int hook::inotify_add_watch(int fd, const char* path, std::uint32_t mask) {
  if (is_taken_for_directory(AT_FDCWD, path)) return -1;
  if (path == nullptr || !is_container_at(AT_FDCWD, path))
    return as_below_file(real().inotify_add_watch(fd, path, mask), AT_FDCWD, path);
  errno = ::fcntl(fd, F_GETFD) < 0 ? EBADF : mask == 0 ? EINVAL : (mask & IN_ONLYDIR) != 0 ? ENOTDIR : ENOSPC;
  return -1;
}
