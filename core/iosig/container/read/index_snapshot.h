// The index of a container whose writers have all ended, merged by the first who reads it and kept in the container for
// all who come after, on every node: they read one small file instead of one for each writer.
//
// It is of use as long as the container's directories are as they were. Nothing changes in a container without a name
// that comes or goes in one of them: a writer makes a tail before it writes and removes it at its end. So nothing is
// kept while a tail is there, nor before the directories' times are old enough that another change would show in them.
#pragma once

#include <cstdint>
#include <optional>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {

/// Of the directories that writers have their indices in.
struct DirectoryState {
  std::uint64_t fingerprint = 0;  ///< another one after any name in them came or went
  std::int64_t newest_ns = 0;     ///< since 1970, when that was last so, by the file system's clock
};
[[nodiscard]] DirectoryState state_of(const ContainerDirectory& directory);

/// The kept index, if there is one that is sound and of the container as it is.
[[nodiscard]] std::optional<MergedIndex> read_index_snapshot(const ContainerDirectory& directory);

/// Keeps what was read of a container without tails and problems, all of it between `before` and now; not if it may
/// have changed meanwhile, where nobody may write, or while somebody else does the same. `merged.state` is set here.
void keep_index(const ContainerDirectory& directory, const DirectoryState& before, MergedIndex merged);

}  // namespace iosig
