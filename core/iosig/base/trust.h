// Who else could change what a path leads to: IOSIG takes no orders from a file, and puts no data into a folder, that a
// stranger could swap.
//
// Trusted are root, this user, the owners of the folders on the way, and the groups that these admit: project folders
// that a group shares are common. Everybody is not. So a folder is refused that every user can write without the sticky
// bit; and in one with the sticky bit (/tmp) what belongs to somebody else, who may have planted it, but for a folder
// of one of this user's groups that is closed to everybody.
//
// Root trusts root alone, since what misleads it misleads the machine: everything on the way must be root's and closed
// to other writers, but for the sticky bit. Root of a user namespace (a container without rights) is a user like
// others.
//
// Both look from / down, through links. What was found sound therefore stays so: no stranger could change it meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Fails as `system` when a stranger could swap `folder` or what this user puts into it; the message says which folder
/// on the way is the weak one and what to do. What does not exist yet is found sound as far as it goes.
[[nodiscard]] Result<void> check_folder(const std::string& folder);

/// How a file came to be read: it stands where IOSIG looks by itself, or the user named it. Root may name another
/// user's file (a checkout of somebody else's); then it is as careful as other users are, and no more.
enum class Configuration { found, named };

/// The content of a file that tells IOSIG what to do. Fails as `bad_input` when a stranger could write it or it is
/// larger than any configuration, as check_folder when one could swap it, and else as read_file.
[[nodiscard]] Result<std::string> read_configuration(const std::string& path, Configuration how);

/// More than any storage description or rules file has, and read in a moment.
inline constexpr std::uint64_t largest_configuration_bytes = 4u << 20;

}  // namespace iosig
