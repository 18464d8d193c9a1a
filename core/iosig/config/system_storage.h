// The machine's description (/etc/iosig/storage.toml) beside another one: its mount points, and the limits that its
// administrator sets. Pure.
#pragma once

#include <functional>
#include <string>

#include "iosig/model/storage.h"

namespace iosig {

/// Adds the mount points that only `system` has, by path, with their devices and all members of these; where `storage`
/// has no policy, also that. A device whose name `storage` uses for another one gets a new name: "nvme0 (system)". What
/// both describe stays as it is in `storage`.
void add_system_mount_points(const Storage& system, Storage& storage);

/// Returns where a path leads (config/resolve_links).
using ResolvePath = std::function<std::string(const std::string&)>;

/// Returns whether the description sets any limit at all; else no path needs to be resolved.
[[nodiscard]] bool has_limits(const Storage& system);

/// Returns whether `system` forbids IOSIG to use `path`, by the rules below. For its own description too, whose mount
/// points hold the limits.
[[nodiscard]] bool is_forbidden_by(const Storage& system, const std::string& path, const ResolvePath& resolve = {});

/// Applies the limits of `system` to every mount point of `storage`: `forbidden`, and the smaller `max_share`, with
/// Origin::administrator. A limit holds for its path and all paths below, up to the next mount point that `system`
/// describes. Paths of both are compared as `resolve` returns them; without it, as texts without `..`, doubled and
/// trailing slashes.
void apply_limits(const Storage& system, Storage& storage, const ResolvePath& resolve = {});

}  // namespace iosig
