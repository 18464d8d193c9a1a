// The index snapshot: the merged index of a container, which the first reader saves in the container after all writers
// have closed. Later readers on any node read this one file instead of one index per writer.
//
// It is valid as long as the container's directories are unchanged: a writer creates its tail before it writes and
// deletes it when it closes, so no content changes without a name that appears or disappears. No snapshot is saved
// while there is a tail, nor until the directories' times are so old that any later change would give them other times.
#pragma once

#include <cstdint>
#include <optional>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/read/content.h"

namespace iosig {

/// State of the directories that hold the indices.
struct DirectoryState {
  std::uint64_t fingerprint = 0;  ///< differs after any name in them appeared or disappeared
  std::int64_t newest_ns = 0;     ///< time of the last such change since 1970, by the file system's clock
};
/// Reads the state.
[[nodiscard]] DirectoryState state_of(const ContainerDirectory& directory);

/// Returns the index snapshot, or nothing if there is none, or if it is damaged or out of date.
[[nodiscard]] std::optional<IndexSnapshot> read_index_snapshot(const ContainerDirectory& directory);

/// Saves the merged index of `content`, which was read since `before`. Does nothing if the content has tails or
/// problems or is read as fast without a snapshot, if the container may have changed since, if it is not writable, or
/// while another process saves one. Sets `merged.state`.
void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before,
                         const ContainerContent& content, IndexSnapshot& merged);
/// The same for a merged index whose content has neither tails nor problems, and at least as many writers as a snapshot
/// is worth.
void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before, IndexSnapshot& merged);
/// The same; merges the content only if the snapshot can be saved.
void save_index_snapshot(const ContainerDirectory& directory, const DirectoryState& before,
                         const ContainerContent& content);

}  // namespace iosig
