// A place in the tree of files: a name in a directory that is held open.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// What happens at a place happens in the directory that was looked at, even if somebody renames it meanwhile.
struct Place {
  Fd directory;                ///< may be O_PATH
  std::string directory_path;  ///< absolute, free of links
  std::string name;
  dev_t device = 0;  ///< file system of the directory

  [[nodiscard]] std::string path() const;
};

/// `path`, if relative, starts from `from_directory` (AT_FDCWD: the working directory). Its last part need not exist;
/// its parent must, else `system`. A path without a last name ("/", "a/..", "a/") is `usage`.
[[nodiscard]] Result<Place> locate(int from_directory, std::string_view path);

/// `name` in `directory`, whatever stands there.
[[nodiscard]] Result<Place> place_in(Fd directory, std::string name);

/// Where the link at `place` leads, as its text stands; nothing when there is no link.
[[nodiscard]] std::optional<std::string> link_target(const Place& place);

}  // namespace iosig
