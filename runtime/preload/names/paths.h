// Decides which paths are containers and which new files become containers.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "iosig/container/layout/container_directory.h"
#include "preload/files/open_file.h"

namespace iosig::preload {

/// Whether the program finds containers as files. To a program that is only traced they are directories, and no name is
/// hidden: it finds what it finds without this library.
[[nodiscard]] bool are_containers_files();

/// Whether `path`, relative to `directory`, is a container. Follows symbolic links. "": the directory itself.
[[nodiscard]] bool is_container_at(int directory, const char* path);
/// The same without following a symbolic link in the last component.
[[nodiscard]] bool is_container_not_link_at(int directory, const char* path);

/// access(2) for the container at `path`: checks the mode of its manifest. Returns -1 with errno on failure.
[[nodiscard]] int access_container(int directory, const char* path, int mode, int flags);
/// Returns the result of use(path of the manifest of the container at `path`), which is 0, or -1 with errno. On the
/// stack the path takes no more room than it needs: programs open files on stacks of 8 KiB (sigaltstack(2)).
template <class Use>
[[nodiscard, gnu::noinline]] int with_manifest_of(const char* path, Use use) {
  const std::size_t length = std::strlen(path);
  if (length >= PATH_MAX) {
    errno = ENAMETOOLONG;
    return -1;
  }
  char* const manifest = static_cast<char*>(__builtin_alloca(length + 1 + container_manifest_name.size() + 1));
  char* name = std::copy_n(path, length, manifest);
  if (length > 0) *name++ = '/';
  name[container_manifest_name.copy(name, container_manifest_name.size())] = '\0';
  return use(manifest);
}

/// Returns the descriptor of a container that `path` names: /dev/stdin, /dev/fd/N, /proc/self/fd/N, /proc/PID/fd/N of
/// this process, and so on; else -1. Does not follow symbolic links to such names.
[[nodiscard]] int named_descriptor(const char* path);

/// Whether `path` points to a readable string that ends within some PATH_MAX bytes. Other pointers are passed to the
/// kernel unchanged, which fails with EFAULT or ENAMETOOLONG. The last string of each thread is cached and not checked
/// again.
[[nodiscard]] bool is_string(const char* path);
/// Whether `path` points to an empty string.
[[nodiscard]] bool is_empty_string(const char* path);

/// Resolves a path that names a descriptor of a container (see named_descriptor()) to the container's directory and "".
/// Other paths stay as they are. Keeps the open file alive meanwhile.
class ResolvedPath {
 public:
  ResolvedPath(int from, const char* name, int flags = 0)
      : directory(from), path(name), file_(descriptor_meant(from, name, flags)) {
    if (!file_ || file_->directory < 0) return;
    directory = file_->directory;
    path = "";
  }
  int directory;
  const char* path;

  [[nodiscard]] bool is_open_file() const { return file_ && file_->directory >= 0; }

 private:
  static int descriptor_meant(int from, const char* name, int flags) {
    if ((flags & AT_EMPTY_PATH) != 0 && is_empty_string(name)) return from;
    return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? -1 : named_descriptor(name);
  }
  InUse file_;
};

// A container is a regular file for the program: a path below it, or its path with a trailing slash, fails with
// ENOTDIR.
/// Whether `path` is a container and ends like a directory's ("/", "/."); sets errno to ENOTDIR then.
[[nodiscard]] bool is_taken_for_directory(int directory, const char* path);
/// Whether the parent directory of `path` is a container; sets errno to ENOTDIR then.
[[nodiscard]] bool would_lie_in_container(int directory, const char* path);
/// Returns `done`, the result of a call. If the call failed with ENOENT because `path` is below a container, changes
/// errno to ENOTDIR.
int as_below_file(int done, int directory, const char* path);

/// Whether a file that is created at `path` becomes a container (runtime/host/binding.h). Runs isolated.
[[nodiscard]] bool is_bound(int directory, const char* path);

/// Whether open(2) of `path` with `flags` opens or makes a container, or fails because the path leads into one.
[[nodiscard]] bool concerns_container(int directory, const char* path, int flags);

/// Makes an empty container. Returns 0 or errno. Runs isolated.
[[nodiscard]] int make_container(int directory, const char* path, mode_t mode);

/// Opens the directory of a container for the engine. Returns -1 with errno on failure.
[[nodiscard]] int open_directory_at(int directory, const char* path, int flags = 0);

// Operations on names that involve a container (container/admin/names.h). They return 0 or errno and run isolated.
[[nodiscard]] int unlink_container_at(int directory, const char* path);
/// Called after rmdir(2) has found the directory not empty. Containers that were removed while open are in it, under
/// hidden names; for programs it is empty.
[[nodiscard]] int remove_directory_at(int directory, const char* path);
[[nodiscard]] int rename_container_at(int from, const char* path, int to, const char* name, unsigned flags);

}  // namespace iosig::preload
