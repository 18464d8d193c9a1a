// Reconstructs the manifest of a container that has lost it, or has that of another container in its place, from copies
// on its targets or from its index droppings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/container/layout/container_manifest.h"

namespace iosig {

struct RescuedManifest {
  ContainerManifest manifest;
  std::string from;  ///< its source, for messages
};

/// Returns a manifest for the directory at `path`: the copy in one of `targets`, the directories that the container was
/// created with, or else one made from the index droppings. Returns nothing if the manifest is sound, or if there are
/// no droppings. A manifest is another container's if most index droppings name one other container, and neither an
/// index nor a record of a closed writer names that of the manifest. Fails with `bad_input` if the manifest has a newer
/// version, if the data lie on targets that are not given, or if there are droppings of several containers.
[[nodiscard]] Result<std::optional<RescuedManifest>> rescue_manifest(const std::string& path,
                                                                     const std::vector<std::string>& targets);

/// Writes the manifest into the directory at `path` atomically; keeps the old one as `.iosig-aside-<time>`.
[[nodiscard]] Result<void> put_manifest(const std::string& path, const ContainerManifest& manifest);

}  // namespace iosig
