// The machine's description (/etc/iosig/storage.toml) beside another one: its mount points, and the limits that its
// administrator sets. Pure.
#pragma once

#include "iosig/model/storage.h"

namespace iosig {

/// Adds the mount points that only `system` has, by path, with their devices and all members of these; where `storage`
/// has no policy, also that. A device whose name `storage` uses for another one gets a new name: "nvme0 (system)". What
/// both describe stays as it is in `storage`.
void add_system_mount_points(const Storage& system, Storage& storage);

/// Applies the limits of `system` to every mount point of `storage`: `forbidden`, and the smaller `max_share`, with
/// Origin::administrator. A limit holds for its path and all paths below, up to the next mount point that `system`
/// describes. Paths are compared as texts without `..`, doubled and trailing slashes; links are not followed.
void apply_limits(const Storage& system, Storage& storage);

}  // namespace iosig
