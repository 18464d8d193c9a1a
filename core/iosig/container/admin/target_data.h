// The data of containers on a mount point: which container each directory belongs to, and whether that is still there.
// What `rm -r` of a container leaves behind is found by it; and what removals of containers have left behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

struct TargetData {
  enum class State {
    used,      ///< the container is there, or under another name in the same directory
    orphaned,  ///< the directory that the container was made in is there, and no container of that id in it: it was
               ///< removed, or moved, or its file system is not mounted there now
    removed,   ///< the container was removed while a program had it open, and waits under a hidden name
    unknown,   ///< that directory cannot be looked into, or the data do not say where it is
  };
  std::string path;       ///< of their directory, which is called as the container's id
  std::string container;  ///< its path; empty: they do not say
  State state = State::unknown;
  bool is_held = false;  ///< by a process of this node, of a removed container
  std::uint64_t data_bytes = 0;
  std::int64_t changed_unix_s = 0;  ///< when anything in it last changed
};

/// What lies in `directory`, one of ContainerOptions::targets, by name. No link in it is followed. Fails as `system`
/// where it cannot be listed.
[[nodiscard]] Result<std::vector<TargetData>> target_data_in(const std::string& directory);

/// Removes them; with the removed container that they belong to, if no process of this node holds it. Fails as `usage`
/// unless they are orphaned, or removed and not held, looked at anew, and as `system`.
[[nodiscard]] Result<void> remove_target_data(const TargetData& data);

/// What a removal has left behind: its holder, or the process that removed it, was killed.
struct RemovedContainer {
  std::string path;
  std::uint64_t data_bytes = 0;  ///< without those on targets
  std::int64_t changed_unix_s = 0;
  bool is_held = false;  ///< by a process of this node
};

/// All below `directory` on its file system, by path. Follows no link. Fails as `system` where it cannot be listed.
[[nodiscard]] Result<std::vector<RemovedContainer>> removed_below(const std::string& directory);

/// Deletes it with its data on all targets. Fails as `usage` while a process holds it, and as `system`.
[[nodiscard]] Result<void> remove_removed(const std::string& path);

}  // namespace iosig
