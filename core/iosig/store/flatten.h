// A container's bytes as an ordinary file.
#pragma once

#include <string>

#include "iosig/store/container_view.h"

namespace iosig {

/// Writes all that `view` shows into `path`, where nothing may be: complete and synced, or not at all. Holes stay
/// holes. The file gets the logical file's permissions. Fails as ContainerView::read() where bytes are lost.
[[nodiscard]] Result<void> export_container(ContainerView& view, const std::string& path);

/// Puts an ordinary file with the same bytes in the container's place, in one step, and removes the container. Fails as
/// `infeasible` while somebody writes to it.
[[nodiscard]] Result<void> flatten_container(const std::string& path);

}  // namespace iosig
