// Files of this user that their mode closes to this user, too: umask 0777, or a program that made them write-only.
#pragma once

#include <string>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Opens `name` in `directory` to read it, follows no link and waits for no other process. A regular file of this user
/// that lacks the owner's read permission gets it for the moment of the open: its owner may read it all the same.
[[nodiscard]] Fd open_own_to_read(int directory, const std::string& name);
[[nodiscard]] inline Fd open_own_to_read(const Place& place) {
  return open_own_to_read(place.directory.get(), place.name);
}

/// Gives `mode` to what `name` in `directory` is, if this user owns it and its owner lacks a permission of `mode`: the
/// umask of the program took it away when it was made.
void ensure_mode(const Fd& directory, const std::string& name, unsigned mode);

/// Gives the directory `name` in `directory` the default ACL of the open directory `home` (O_PATH will do), so that
/// what a program makes in it has the permissions that it would have had at home. Fails as `system` where the file
/// system has no ACLs; no default ACL at home is fine.
[[nodiscard]] Result<void> inherit_default_acl(const Fd& home, const Fd& directory, const std::string& name,
                                               const std::string& shown);

/// Moves immutable and append-only, which keep a file from being removed, from `from` to `to`, as far as this user may
/// and the file system of `to` has them. Fails if they cannot be taken from `from`.
[[nodiscard]] Result<void> move_locks(const Fd& from, const Fd& to, const std::string& shown);

}  // namespace iosig
