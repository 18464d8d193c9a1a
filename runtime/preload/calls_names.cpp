// What is done to names, and what folders show.

#include <dirent.h>

#include <cerrno>

#include "answer.h"
#include "iosig/store/container_folder.h"
#include "opening.h"
#include "paths.h"
#include "real.h"

namespace iosig::preload {
namespace {

int remove_name(int folder, const char* path, int flags) {
  if (path == nullptr || !is_container_not_link_at(folder, path)) return real().unlinkat(folder, path, flags);
  const int before = errno;
  if ((flags & AT_REMOVEDIR) != 0) return static_cast<int>(answer(-ENOTDIR, before));
  const Inside inside;
  return static_cast<int>(answer(inside ? -unlink_at(folder, path) : -EDEADLK, before));
}

int rename_name(int from, const char* path, int to, const char* name, unsigned flags) {
  const auto plain = [&] {
    return flags == 0 ? real().renameat(from, path, to, name) : real().renameat2(from, path, to, name, flags);
  };
  if (path == nullptr || name == nullptr || flags != 0) return plain();
  if (!is_container_not_link_at(from, path) && !is_container_not_link_at(to, name)) return plain();
  const int before = errno;
  const Inside inside;
  return static_cast<int>(answer(inside ? -rename_over(from, path, to, name) : -EDEADLK, before));
}

int link_name(int from, const char* path, int to, const char* name, int flags) {
  if (path == nullptr || !is_container_not_link_at(from, path)) return real().linkat(from, path, to, name, flags);
  errno = EPERM;  // a folder has one name
  return -1;
}

/// The next entry that programs may see; a container's kind is that of a file.
dirent* next_entry(DIR* folder) {
  for (;;) {
    dirent* const entry = real().readdir(folder);
    if (entry == nullptr) return nullptr;
    if (is_hidden_name(entry->d_name)) continue;
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && is_container_at(::dirfd(folder), entry->d_name))
      entry->d_type = DT_REG;
    return entry;
  }
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

extern "C" {

int unlinkat(int folder, const char* path, int flags) noexcept { return remove_name(folder, path, flags); }
int unlink(const char* path) noexcept { return remove_name(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  if (path != nullptr && is_container_not_link_at(AT_FDCWD, path)) return remove_name(AT_FDCWD, path, 0);
  return real().remove(path);
}

int rename(const char* from, const char* to) noexcept { return rename_name(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from, const char* path, int to, const char* name) noexcept {
  return rename_name(from, path, to, name, 0);
}
int renameat2(int from, const char* path, int to, const char* name, unsigned flags) noexcept {
  return rename_name(from, path, to, name, flags);
}

int link(const char* from, const char* to) noexcept { return link_name(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from, const char* path, int to, const char* name, int flags) noexcept {
  return link_name(from, path, to, name, flags);
}

DIR* opendir(const char* path) {
  if (path == nullptr || !is_container_at(AT_FDCWD, path)) return real().opendir(path);
  errno = ENOTDIR;
  return nullptr;
}
DIR* fdopendir(int fd) {
  if (!is_ours(fd)) return real().fdopendir(fd);
  errno = ENOTDIR;
  return nullptr;
}
dirent* readdir(DIR* folder) { return next_entry(folder); }
dirent64* readdir64(DIR* folder) { return reinterpret_cast<dirent64*>(next_entry(folder)); }

}  // extern "C"
