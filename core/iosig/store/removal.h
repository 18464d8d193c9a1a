// Containers that are removed while programs have them open, each in its own process: whoever has one open holds its
// folder; who removes it only takes its name, and the last who lets it go removes the rest, as with an unlinked file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/files.h"

namespace iosig {

/// A name beside `path` for a container that is being removed, unlike any other's.
[[nodiscard]] std::string removed_name(std::string_view path);

/// The container of the open `folder` is in use for as long as this descriptor, or a duplicate of it, is open. false:
/// it is being removed.
[[nodiscard]] bool hold_container(int folder);

/// What goes with a container.
struct Removal {
  std::vector<std::string> folders;  ///< the container's own, and those on its targets
  std::int64_t data_bytes = 0;       ///< in the data droppings
};
/// Fails as unlink_container(), and as `bad_input` or `usage` for what is no container, or a link to one.
[[nodiscard]] Result<Removal> removal_of(const std::string& path);

/// As unlink(2).
[[nodiscard]] Result<void> unlink_container(const std::string& path);

/// Whether the container of the open `folder`, which is held, was unlinked.
[[nodiscard]] bool is_unlinked(int folder);

/// Lets go what hold_container() held; removes it if it was unlinked and nobody else holds it.
void let_go_container(Fd folder);

}  // namespace iosig
