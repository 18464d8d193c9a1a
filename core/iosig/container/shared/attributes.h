// Mode, owner and times of a container as those of the logical file. Its manifest bears the mode and the owner; a
// change reaches every other piece, too, so that all users of the file can use its pieces, and no others.
//
// The functions return 0 or an errno, as the system calls on a file do.
#pragma once

#include <sys/stat.h>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/shared/failures.h"

namespace iosig {

/// Turns `status` of the container's directory into that of the file with this manifest, except for size and times.
void show_manifest(const struct stat& manifest, struct stat& status);

/// Sets the times of the file. A writer that is closed later changes them again.
[[nodiscard]] int set_piece_times(const ContainerDirectory& directory, const timespec times[2]);
[[nodiscard]] int set_piece_modes(const ContainerDirectory& directory, unsigned mode, const FailureLog& log);
[[nodiscard]] int set_piece_owners(const ContainerDirectory& directory, uid_t user, gid_t group, const FailureLog& log);

/// Removes the set-user-id and set-group-id bits of a file whose bytes change, unless the kernel lets the caller keep
/// them.
void drop_privileges(const ContainerDirectory& directory);

}  // namespace iosig
