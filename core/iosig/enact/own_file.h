// Access to files of this user, also those whose mode denies even their owner access: umask 0777, or a program that
// created them write-only.
#pragma once

#include <string>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Opens `name` in `directory` for reading. Follows no link and does not block. If a regular file of this user denies
/// its owner read permission, grants it for the duration of the open. Reads by the descriptor leave the access time of
/// this user's files as it is.
[[nodiscard]] Fd open_own_to_read(int directory, const std::string& name);
[[nodiscard]] inline Fd open_own_to_read(const Place& place) {
  return open_own_to_read(place.directory.get(), place.name);
}

/// Flushes an open file or directory, if its file system can. `shown`: its path, for the message.
[[nodiscard]] Result<void> sync_file(const Fd& file, const std::string& shown);

/// Sets the mode of `name` in `directory` to `mode` if this user owns it and a permission of `mode` is missing, because
/// the umask of the creating program removed it.
void ensure_mode(const Fd& directory, const std::string& name, unsigned mode);

/// Gives the directory `name` in `directory` the default ACL of the open directory `home` (O_PATH suffices), so files
/// created in it have the permissions that they would have at home. Succeeds if home has no default ACL. Fails as
/// `system` where the file system has no ACLs.
[[nodiscard]] Result<void> inherit_default_acl(const Fd& home, const Fd& directory, const std::string& name,
                                               const std::string& shown);

/// Moves the attributes immutable and append-only, which prevent removal, from `from` to `to`, as far as this user may
/// and the file system of `to` supports them. Fails if they cannot be removed from `from`.
[[nodiscard]] Result<void> move_locks(const Fd& from, const Fd& to, const std::string& shown);

}  // namespace iosig
