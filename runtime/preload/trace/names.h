// The names in a trace: each path is written once by each thread, and has an id in its process.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "preload/names/paths.h"

namespace iosig::preload::trace {

/// What path_at() returns for files that are not to be traced (iosig trace --files).
inline constexpr std::uint32_t left_out_path = UINT32_MAX;

/// Returns the id of the absolute path that `path` means, from 1, and writes it to this thread's part if it has not
/// been there lately. 0: unknown. `path` is not resolved: symbolic links and ".." stay. Preserves errno.
[[nodiscard]] std::uint32_t path_at(int directory, const char* path);
/// Whether a path may be read after a call on it that had this result for the trace: one that fails for another reason
/// may not have looked at it.
[[nodiscard]] inline bool is_readable(const char* path, std::int64_t recorded) {
  const bool was_read = recorded >= 0 || recorded == -ENOENT || recorded == -EEXIST || recorded == -ENAMETOOLONG;
  return was_read || (recorded != -EFAULT && is_string(path));
}
/// The same of a call that takes two paths.
[[nodiscard]] inline bool are_readable(const char* one, const char* other, std::int64_t recorded) {
  return recorded >= 0 || (recorded != -EFAULT && is_string(one) && is_string(other));
}

/// The same for a path that does not count from the working directory: what a symbolic link leads to.
[[nodiscard]] std::uint32_t path_as_said(const char* path);
/// The same for an open descriptor, whose path the kernel knows.
[[nodiscard]] std::uint32_t path_of_descriptor(int fd);

/// Called before the process changes its working directory: a relative path is of the directory before.
void learn_working_directory();

/// Called after the process has changed its working directory.
void working_directory_changed();

/// Whether there are no globs.
[[nodiscard]] bool is_every_file_traced();

/// Sets the globs whose files are traced, separated by colons; "": all. Called once. `globs` lives as long as the
/// process.
void set_traced_globs(std::string_view globs);

}  // namespace iosig::preload::trace
