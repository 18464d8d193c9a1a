// Whether data on a mount outlive a loss of power. What lies beneath decides: the upper directory of an overlay, the
// file of a loop device, the source of a FUSE file system.
//
//   ext4 on /dev/loop0, whose file lies on an overlay, whose upper directory lies on tmpfs: lost
#pragma once

#include <string>
#include <vector>

#include "iosig/storage/mountinfo.h"

namespace iosig {

enum class Persistence { lasting, lost, unknown };

struct Beneath {
  Persistence persistence = Persistence::lasting;
  bool is_memory = false;  ///< what was followed ends in RAM
  std::string why;         ///< of `lost` and `unknown`, to follow the mount's path in a sentence
};

/// Follows `mount`, one of `mounts`, down to a device, memory or a server. A server keeps its data, unless it is this
/// machine: then its path is followed too. `unknown`: a FUSE file system or an overlay that does not tell where its
/// files lie, or tells a place that does not answer. `sysfs` is "/sys" but in tests.
[[nodiscard]] Beneath what_lies_beneath(const Mount& mount, const std::vector<Mount>& mounts,
                                        const std::string& sysfs = "/sys");

}  // namespace iosig
