// Finds data of containers that were removed: on targets, where `rm -r` of a container leaves them, and under the
// hidden names of interrupted removals. For `iosig gc`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

struct TargetData {
  enum class State {
    used,      ///< the container exists, possibly under another name in the same directory
    orphaned,  ///< the container's directory exists but holds no container of this id. **Not proof of a removal:** the
               ///< container may have been moved elsewhere, or its file system may not be mounted
    removed,   ///< the container was removed while a program had it open, and still has its hidden name
    unknown,   ///< the container's directory cannot be read, or the data do not name it
  };
  std::string path;       ///< directory of the data, named by the container's id
  std::string container;  ///< path of the container; empty: the data do not name it
  State state = State::unknown;
  bool is_held = false;  ///< a process of this node holds the removed container
  std::uint64_t data_bytes = 0;
  std::int64_t changed_unix_s = 0;  ///< last change of anything in the directory
};

/// Returns the data in `directory`, one of ContainerOptions::targets, by name. Follows no link. Fails with `system` if
/// it cannot be listed.
[[nodiscard]] Result<std::vector<TargetData>> target_data_in(const std::string& directory);

/// **Deletes the data**, and the removed container that they belong to. Examines them again first, and fails with
/// `usage` unless they are orphaned, or removed and held by no process of this node.
[[nodiscard]] Result<void> remove_target_data(const TargetData& data);

/// A container under its hidden name: its last holder, or the process that removed it, was killed.
struct RemovedContainer {
  std::string path;
  std::uint64_t data_bytes = 0;  ///< without data on targets
  std::int64_t changed_unix_s = 0;
  bool is_held = false;  ///< a process of this node holds it
};

/// Returns all removed containers below `directory` on its file system, by path. Follows no link. Fails with `system`
/// if it cannot be listed.
[[nodiscard]] Result<std::vector<RemovedContainer>> removed_below(const std::string& directory);

/// **Deletes a removed container** with its data on all targets. Fails with `usage` if a process holds it.
[[nodiscard]] Result<void> remove_removed(const std::string& path);

}  // namespace iosig
