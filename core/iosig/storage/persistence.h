// Determines whether data on a mount survive a power failure. That depends on what lies beneath: the upper directory of
// an overlay, the file of a loop device, the source of a FUSE file system.
//
//   ext4 on /dev/loop0, whose file lies on an overlay, whose upper directory lies on tmpfs: lost
#pragma once

#include <string>
#include <vector>

#include "iosig/storage/mountinfo.h"

namespace iosig {

enum class Persistence { lasting, lost, unknown };

struct BackingStore {
  Persistence persistence = Persistence::lasting;
  bool is_memory = false;  ///< the layers end in RAM
  std::string why;         ///< of `lost` and `unknown`, phrased to follow the mount's path in a sentence
};

/// Follows `mount`, one of `mounts`, down to a device, memory or a server. A server keeps its data; if it is this
/// machine, its path is followed as well. `unknown`: a FUSE file system or an overlay that does not reveal where its
/// files are, or that names a place that does not respond. `sysfs` is "/sys" except in tests.
[[nodiscard]] BackingStore backing_store_of(const Mount& mount, const std::vector<Mount>& mounts,
                                            const std::string& sysfs = "/sys");

}  // namespace iosig
