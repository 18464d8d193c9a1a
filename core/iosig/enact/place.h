// A place in the file tree: a name in an open directory.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// Operations on a place act in the directory that was opened, even if it is renamed meanwhile.
struct Place {
  Fd directory;                ///< may be O_PATH
  std::string directory_path;  ///< absolute, without symbolic links
  std::string name;
  dev_t device = 0;  ///< file system of the directory
  ino_t inode = 0;   ///< of the directory

  [[nodiscard]] std::string path() const;
};

/// Opens the parent directory of `path`, which is relative to `from_directory` (AT_FDCWD: the working directory). The
/// last component need not exist; the parent must, else `system`. A path without a last component ("/", "a/..", "a/")
/// is `usage`.
[[nodiscard]] Result<Place> locate(int from_directory, std::string_view path);

/// Returns the place `name` in `directory`; `name` need not exist.
[[nodiscard]] Result<Place> place_in(Fd directory, std::string name);

/// Returns the target of the link at `place`, unresolved; no value if there is no link.
[[nodiscard]] std::optional<std::string> link_target(const Place& place);

}  // namespace iosig
