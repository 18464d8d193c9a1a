// Decides which container owns the data on a target.
//
// Copying the directory of a container with targets makes two containers with one id over the same data. The copy is
// read-only: its writes and deletions would change the data of the original.
#pragma once

#include <cstddef>
#include <optional>

#include "iosig/container/layout/container_directory.h"

namespace iosig {

/// Returns the owner of the n-th target's data if it is another container. The inode of the container's directory
/// decides, since a rename keeps it. A target without an owner belongs to any container that asks.
[[nodiscard]] std::optional<ContainerOwner> other_owner(const ContainerDirectory& directory, std::size_t n);

/// Fails as `infeasible`, with errno EROFS, if another container owns the data on a target.
[[nodiscard]] Result<void> may_be_written(const ContainerDirectory& directory);

/// Fails as `infeasible` while the container that owns the data is still where it was created.
[[nodiscard]] Result<void> may_be_claimed(const ContainerDirectory& directory);

/// Whether the containers at `one` and `other` have the same data on targets. Then neither may replace the other.
[[nodiscard]] bool share_data(const std::string& one, const std::string& other);

/// Makes this container the owner of the data on all targets. The previous owner becomes the read-only copy. No writer
/// may be active.
[[nodiscard]] Result<void> claim_targets(const ContainerDirectory& directory);

}  // namespace iosig
