// Which paths are containers, and which new files become some.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <array>
#include <climits>

#include "preload/files/open_file.h"

namespace iosig::preload {

/// Whether `path`, from `directory` on, leads to a container; a link is followed. "": the directory itself.
[[nodiscard]] bool is_container_at(int directory, const char* path);
/// The same, but for a link.
[[nodiscard]] bool is_container_not_link_at(int directory, const char* path);

/// access(2) of the file whose container is at `path`: its mode is its manifest's. -1 with errno.
[[nodiscard]] int access_container(int directory, const char* path, int mode, int flags);
/// The manifest of the container at `path`; false: there is no room for its name.
[[nodiscard]] bool manifest_of(const char* path, std::array<char, PATH_MAX + 32>& manifest);

/// The descriptor of a container that `path` is a name of the system's for: /dev/stdin, /dev/fd/N, /proc/self/fd/N,
/// /proc/PID/fd/N of this process, ...; else -1. Links that lead to such a name are not followed.
[[nodiscard]] int named_descriptor(const char* path);

/// What a path means: the container's directory and "" if the path is a name of the system's for a descriptor, which is
/// kept meanwhile; else what it was.
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
    if ((flags & AT_EMPTY_PATH) != 0 && name != nullptr && *name == '\0') return from;
    return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? -1 : named_descriptor(name);
  }
  InUse file_;
};

/// Whether the program gave a string: the kernel refuses another pointer with EFAULT, and so it gets such a path as it
/// is. The pointer that was last asked for is not looked at again.
[[nodiscard]] bool is_string(const char* path);
/// Whether `path` is "", and a string.
[[nodiscard]] bool is_empty_string(const char* path);

// A container is a file: nothing lies below it, and no slash is behind its name.
/// Whether `path` is a container's, and written like a directory's; errno is ENOTDIR then.
[[nodiscard]] bool is_taken_for_directory(int directory, const char* path);
/// Whether what is at `path` would lie in a container; errno is ENOTDIR then.
[[nodiscard]] bool would_lie_in_container(int directory, const char* path);
/// What a call gave: where it found nothing at `path` because that is below a container, errno is ENOTDIR.
int as_below_file(int done, int directory, const char* path);

/// Whether a file that is made at `path` shall be a container (runtime/host/binding.h). Runs isolated.
[[nodiscard]] bool is_bound(int directory, const char* path);

/// Makes an empty container. 0 or errno. Runs isolated.
[[nodiscard]] int make_container(int directory, const char* path, mode_t mode);

/// Of a container: opened for the engine; -1 with errno.
[[nodiscard]] int open_directory_at(int directory, const char* path, int flags = 0);

// Operations on names where a container takes part (container/admin/names.h). 0 or errno. They run isolated.
[[nodiscard]] int unlink_container_at(int directory, const char* path);
/// Of a directory that rmdir(2) found not empty: what was removed from it while it was open is not there for programs.
[[nodiscard]] int remove_directory_at(int directory, const char* path);
[[nodiscard]] int rename_container_at(int from, const char* path, int to, const char* name, unsigned flags);

}  // namespace iosig::preload
