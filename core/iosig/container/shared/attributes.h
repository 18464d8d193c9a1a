// Mode, owner and times of the logical file. The manifest bears the mode and the owner. A change is also applied to all
// other files in the container: the users who may access the logical file can access these files, and no other users
// can.
//
// The functions return 0 or an errno.
#pragma once

#include <sys/stat.h>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/shared/failures.h"

namespace iosig {

/// Converts `status` of the container's directory to that of the logical file, except for size and times.
void show_manifest(const struct stat& manifest, struct stat& status);

/// Sets the times of the file. A writer that is closed later changes them again.
[[nodiscard]] int set_piece_times(const ContainerDirectory& directory, const timespec times[2]);
[[nodiscard]] int set_piece_modes(const ContainerDirectory& directory, unsigned mode, const FailureLog& log);
[[nodiscard]] int set_piece_owners(const ContainerDirectory& directory, uid_t user, gid_t group, const FailureLog& log);

/// Removes the set-user-id and set-group-id bits of a file whose bytes change, unless the kernel lets the caller keep
/// them.
void drop_privileges(const ContainerDirectory& directory);

}  // namespace iosig
