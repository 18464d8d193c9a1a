// Tells whether an untrusted user could change what a path leads to. IOSIG reads no configuration, and puts no data,
// where one could.
//
// Trusted are root, this user, the owners of the directories on the path, and the groups that these admit, because
// projects share directories through a group. All other users are untrusted. So two kinds of directories are refused:
// one that every user can write and that lacks the sticky bit; and, inside a directory with the sticky bit (/tmp), one
// that belongs to another user, who may have planted it. A directory of one of this user's groups that is closed to all
// others is accepted there.
//
// Root trusts only root: every directory on the path must be root's, and not writable for others unless it has the
// sticky bit. Root of a user namespace (a container without privileges) counts as an ordinary user.
//
// Both functions check from / down, through links, so an untrusted user cannot change what they have accepted.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Fails as `system` when an untrusted user could swap `directory` or what this user puts into it; the message says
/// which directory on the way is the weak one and what to do. What does not exist yet is found sound as far as it goes.
[[nodiscard]] Result<void> check_directory(const std::string& directory);

/// How a file came to be read: it stands where IOSIG looks by itself, or the user named it. Root may name another
/// user's file (a checkout of somebody else's); then it is as careful as other users are, and no more.
enum class Configuration { found, named };

/// The content of a file that tells IOSIG what to do. Fails as `bad_input` when an untrusted user could write it or it
/// is larger than any configuration, as check_directory when one could swap it, and else as read_file.
[[nodiscard]] Result<std::string> read_configuration(const std::string& path, Configuration how);

/// More than any storage description or rules file has, and read in a moment.
inline constexpr std::uint64_t largest_configuration_bytes = 4u << 20;

}  // namespace iosig
