// The options of a mount. `iosig mount` passes them to the daemon as arguments `name=value`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/container/layout/container_manifest.h"

namespace iosig::fuse {

struct MountOptions {
  std::string source, mount_point;  ///< absolute, without symbolic links
  IndexKind index = IndexKind::pattern;
  /// Globs of fnmatch(3) for new files that become containers. A glob with a slash matches the path below `source`, any
  /// other glob the file's name. Empty: no new file becomes a container.
  std::vector<std::string> containers;
  unsigned threads = 4;  ///< maximum number of threads that serve requests
  double cache_s = 1;    ///< seconds for which the kernel caches names and attributes
  bool read_only = false;
  bool uncached = false;            ///< no file uses the kernel's cache
  std::string trace;                ///< the directory of the mount's trace; empty: it is not traced
  std::string prefetch;             ///< the predictor; empty: nothing is prefetched
  std::string prefetch_model;       ///< the file of what earlier runs read; empty: none
  std::string prefetch_report;      ///< the file to which is appended what was prefetched; "-": the system's log
  std::int64_t prefetch_bytes = 0;  ///< limit of what is requested and not read yet; 0: the usual one
  int ready_fd = -1;  ///< receives one byte when the mount is ready; then the daemon detaches from its terminal
};

}  // namespace iosig::fuse
