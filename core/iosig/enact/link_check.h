// Checks whether a program that opens a symbolic link at a place reaches its target.
//
// Some file systems prevent that: FAT has no links; a mount with `nosymfollow` follows none; sshfs from 3.7.6 on
// refuses links that lead out of its mount (contain_symlinks), and with transform_symlinks or follow_symlinks they lead
// elsewhere. A link there would make the program's own open fail.
#pragma once

#include <string>

#include "iosig/base/result.h"
#include "iosig/enact/place.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fails with `system` if a link at `place` is known not to work: the storage description says so for its mount point
/// (follows_links = false), or check_link or refused_link has detected it in this process. Reads one number unless the
/// description has such a mount point.
[[nodiscard]] Result<void> links_lead_on(const Place& place, const Storage& storage);

/// Checks the new link at `place`: resolves it, as open(2) does, and compares its text with `destination`, which need
/// not exist. Fails with `system` and the reason if a program would not reach the destination; the caller then removes
/// the link. Later calls of links_lead_on for this file system fail at once. Succeeds without asking if a link in the
/// same directory, by the same path, to the same user directory was followed in the last tenth of a second, and no file
/// system refuses the name.
[[nodiscard]] Result<void> check_link(const Place& place, const std::string& destination);

/// Returns the error for symlink(2) at `place` that failed with the errno `failure`. Remembers a file system without
/// links.
[[nodiscard]] tl::unexpected<Error> refused_link(const Place& place, int failure);

}  // namespace iosig
