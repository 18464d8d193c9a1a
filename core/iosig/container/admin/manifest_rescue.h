// The manifest of a container that has lost its own, as what is left of it tells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/container/layout/container_manifest.h"

namespace iosig {

struct RescuedManifest {
  ContainerManifest manifest;
  std::string from;  ///< what told it, for people
};

/// Of the directory at `path`: the copy in one of `targets`, directories that the container was made with, or else what
/// the index droppings say. Nothing: its own is sound, or there is nothing of a container. Fails as `bad_input` when
/// its own is of a newer version, the data lie on targets that are not given, or droppings of several containers lie
/// there.
[[nodiscard]] Result<std::optional<RescuedManifest>> rescue_manifest(const std::string& path,
                                                                     const std::vector<std::string>& targets);

/// Puts it into the directory at `path`, in one step; what was there is kept as `.iosig-aside-<time>`.
[[nodiscard]] Result<void> put_manifest(const std::string& path, const ContainerManifest& manifest);

}  // namespace iosig
