// Where a path leads through symbolic links, found without asking servers.
//
// realpath(3) blocks if a directory on the way lies on a network file system whose server is dead, and this code runs
// inside users' programs, for mount points that they may never use. Links on such file systems are therefore not
// followed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace iosig {

/// Returns the mount points in `mountinfo` (proc(5)) whose file systems may not answer: network and FUSE file systems.
/// Pure.
[[nodiscard]] std::set<std::string> blocking_mounts(std::string_view mountinfo);

/// Returns the absolute `path` without symbolic links, `.`, `..`, doubled and trailing slashes. From a directory in
/// `blocking` on, and after 40 links, the rest is kept as text; so is what does not exist. Allocates, but opens
/// nothing.
[[nodiscard]] std::string resolve_links(std::string_view path, const std::set<std::string>& blocking);

/// Returns resolve_links for the mounts that this process sees now.
[[nodiscard]] std::function<std::string(const std::string&)> link_resolver();

}  // namespace iosig
