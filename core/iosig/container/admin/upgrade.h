// Lets new writers of a container use the newest version of the format (docs/formats/container.md, Versions).
#pragma once

#include "iosig/base/result.h"
#include "iosig/container/layout/container_directory.h"

namespace iosig {

/// Replaces the manifest, atomically, by one of the newest version. Nothing else changes: each index names its own
/// version, so the droppings that are there stay as they are, and programs that have the container open go on. Returns
/// the version before; the newest one means that there was nothing to do. Programs that know only older versions refuse
/// the container afterwards. Fails with `system` (EPERM) if the caller is neither its owner nor root,
/// and with `infeasible` if a program holds a lock on the file.
[[nodiscard]] Result<std::uint32_t> upgrade_container(const ContainerDirectory& directory, bool dry_run = false);

}  // namespace iosig
