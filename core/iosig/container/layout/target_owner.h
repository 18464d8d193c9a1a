// Whose the data on a container's targets are. Whoever copies the directory of such a container has two of one id over
// the same data; the copy may read them, and nothing else: what it wrote, or removed, would be the other's.
#pragma once

#include <cstddef>
#include <optional>

#include "iosig/container/layout/container_directory.h"

namespace iosig {

/// Whose the n-th target's data are if they are not this container's: of another directory, by its inode, which stays
/// when it is renamed. A target that does not say belongs to whoever asks.
[[nodiscard]] std::optional<ContainerOwner> other_owner(const ContainerDirectory& directory, std::size_t n);

/// Fails as `infeasible`, with errno EROFS, for a copy.
[[nodiscard]] Result<void> may_be_written(const ContainerDirectory& directory);

/// Fails as `infeasible` while the container that has the data is still where it was made.
[[nodiscard]] Result<void> may_be_claimed(const ContainerDirectory& directory);

/// Whether the container at `one` has data that are those of the one at `other`, which may therefore not replace it.
[[nodiscard]] bool share_data(const std::string& one, const std::string& other);

/// Has the data on all targets belong to this container; what had them is the copy from then on. Nobody may be writing.
[[nodiscard]] Result<void> claim_targets(const ContainerDirectory& directory);

}  // namespace iosig
