// Containers that are removed while programs have them open, each in its own process: whoever has one open holds its
// folder; who removes it only takes its name, and the last who lets it go removes the rest, as with an unlinked file.
#pragma once

#include <string>

#include "iosig/base/files.h"

namespace iosig {

/// The container of the open `folder` is in use for as long as this descriptor, or a duplicate of it, is open. false:
/// it is being removed.
[[nodiscard]] bool hold_container(int folder);

/// As unlink(2).
[[nodiscard]] Result<void> unlink_container(const std::string& path);

/// Whether the container of the open `folder`, which is held, was unlinked.
[[nodiscard]] bool is_unlinked(int folder);

/// Lets go what hold_container() held; removes it if it was unlinked and nobody else holds it.
void let_go_container(Fd folder);

}  // namespace iosig
