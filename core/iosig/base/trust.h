// Checks whether an untrusted user could change what a path leads to. IOSIG neither reads configuration from nor puts
// data at such a path.
//
// Trusted are root, this user, the owners of the directories on the path, and the groups that may write to them,
// because projects share directories through a group. All other users are untrusted. Both functions therefore refuse a
// world-writable directory without the sticky bit and, inside a world-writable directory with the sticky bit (/tmp), an
// entry that another ordinary user owns and may have planted. They accept a directory of one of this user's groups
// there if others cannot write to it.
//
// Root trusts only root: every directory on the path must belong to root and must not be writable by others unless it
// has the sticky bit. Root of a user namespace (an unprivileged container) counts as an ordinary user.
//
// Both functions check from / down and through links; an untrusted user cannot change what they have accepted.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Fails with `system` if an untrusted user could replace `directory` or the files that this user puts into it; the
/// message names the weak directory and the remedy. A path that does not exist yet is checked as far as it exists.
[[nodiscard]] Result<void> check_directory(const std::string& directory);

/// The origin of a path: found in a standard place, or named by the user. For a named file, root accepts other users'
/// files (a checkout of another user) under the rules of an ordinary user.
enum class Configuration { found, named };

/// Reads a file that controls IOSIG. Fails with `bad_input` if an untrusted user could write it or it is larger than
/// any configuration, as check_directory if an untrusted user could replace it, and otherwise as read_file.
[[nodiscard]] Result<std::string> read_configuration(const std::string& path, Configuration how);

/// Larger than any storage description or rules file, and quick to read.
inline constexpr std::uint64_t largest_configuration_bytes = 4u << 20;

}  // namespace iosig
