// Operations on a whole container: create, stat, truncate, rename, remove. container/write/container_writer writes,
// container/read/container_view reads.
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
  std::uint32_t mode =
      0644;  ///< mode of the logical file, to which the umask or the default ACL applies, as in open(2)
  /// Existing directories over whose mount points the data are spread, round robin by writer; none: the data lie in the
  /// container. Each gets a directory with mode 0700, named by the container's id.
  std::vector<std::string> targets;
};

/// Creates an empty container at `path` atomically. Fails with `usage` (EEXIST) if `path` exists.
[[nodiscard]] Result<std::shared_ptr<const ContainerDirectory>> create_container(const std::string& path,
                                                                                 const ContainerOptions& options = {});

/// Prepares for a manifest with `mode`: if its owner could not read it, saves a readable copy beside it, which IOSIG
/// reads instead (container_directory.h). `shown`: the directory's path, for messages.
[[nodiscard]] Result<void> keep_manifest_readable(const Fd& directory, std::string_view shown,
                                                  const ContainerManifest& manifest, unsigned mode);

/// Returns size and times of the logical file, from the index snapshot or all indices; may leave a snapshot for the
/// view that the caller opens next. If `has_write_in_progress` is not null, it is set as in ContainerContent.
[[nodiscard]] Result<ContainerStatus> status_of(const ContainerDirectory& directory,
                                                bool* has_write_in_progress = nullptr);

/// **Discards the bytes behind `size`**, or extends the logical file with zeros, for all writers. If `size` is 0, also
/// deletes the droppings of closed writers, whose data are void.
[[nodiscard]] Result<void> truncate_container(const std::shared_ptr<const ContainerDirectory>& directory,
                                              std::int64_t size);

/// Calls rename_at() (container/admin/names.h) for two paths and a container at `from`.
[[nodiscard]] Result<void> rename_container(const std::string& from, const std::string& to);

/// **Deletes immediately, even while the container is open elsewhere.** unlink_container() (container/admin/removal.h)
/// waits for its holders. A killed removal leaves `.<name>.iosig-removed-...`.
[[nodiscard]] Result<void> remove_container(const std::string& path);

}  // namespace iosig
