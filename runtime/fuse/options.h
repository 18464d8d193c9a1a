// What a mount is asked to do; `iosig mount` hands it to the daemon as words `name=value`.
#pragma once

#include <string>
#include <vector>

#include "iosig/container/layout/container_manifest.h"

namespace iosig::fuse {

struct MountOptions {
  std::string source, mount_point;  ///< absolute, without links
  IndexKind index = IndexKind::pattern;
  /// New files that become containers: globs of fnmatch(3), of the path below `source` where they have a slash, else of
  /// the name. None: no new file does.
  std::vector<std::string> containers;
  unsigned threads = 4;  ///< that serve requests at most
  double cache_s = 1;    ///< for so long the kernel believes names and attributes
  bool read_only = false;
  int ready_fd = -1;  ///< told by one byte that the mount is there; then the daemon leaves its terminal
};

}  // namespace iosig::fuse
