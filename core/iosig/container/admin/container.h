// Containers as whole files: made, renamed, removed, asked. Writing is container/write/container_writer, reading
// container/read/container_view.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {

struct ContainerOptions {
  IndexKind index = IndexKind::pattern;
  std::uint32_t subdirectories = 16;
  std::uint32_t mode = 0644;  ///< of the logical file, as open(2)'s: the umask or the directory's default ACL counts
  /// Existing directories on the mount points that the data are spread over, round robin by writer; none: they lie in
  /// the container. Each gets a directory of its own (0700), named by the container's id.
  std::vector<std::string> targets;
};

/// Makes an empty container at `path`, where nothing may be: it is there as a whole, or not at all. Fails as `usage`
/// when something is there already.
[[nodiscard]] Result<std::shared_ptr<const ContainerDirectory>> create_container(const std::string& path,
                                                                                 const ContainerOptions& options = {});

/// Before the manifest gets `mode`: if that does not let the file's owner read it, the owner's engine finds a copy of
/// it beside it (container_directory.h). `shown`: the directory's path.
[[nodiscard]] Result<void> keep_manifest_readable(const Fd& directory, std::string_view shown,
                                                  const ContainerManifest& manifest, unsigned mode);

/// Reads the indices, or the one that was kept.
[[nodiscard]] Result<ContainerStatus> status_of(const ContainerDirectory& directory);

/// Cuts the logical file, or lets it grow, for all its writers. To nothing, it also gives back the room of the
/// droppings whose writers have closed them.
[[nodiscard]] Result<void> truncate_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                              std::int64_t size);

/// rename_at() of container/admin/names.h, for two paths and a container at `from`.
[[nodiscard]] Result<void> rename_container(const std::string& from, const std::string& to);

/// **Deletes immediately, even while the container is open elsewhere.** What a killed removal leaves is called
/// `.<name>.iosig-removed-...`. unlink_container() of container/admin/removal.h respects its holders.
[[nodiscard]] Result<void> remove_container(const std::string& path);

}  // namespace iosig
