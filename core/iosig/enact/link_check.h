// Whether a symbolic link at a place leads a program to where its text says.
//
// Not everywhere: FAT has no links; a mount with `nosymfollow` follows none; sshfs from 3.7.6 on refuses links that
// lead out of its mount (contain_symlinks), and with transform_symlinks or follow_symlinks they lead elsewhere. A link
// that was planted there would make the program's own open fail.
#pragma once

#include <string>

#include "iosig/base/result.h"
#include "iosig/enact/place.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fails with `system` when a link at `place` is known to lead nowhere: the description says so of the mount point that
/// `place` lies on (follows_links = false), or check_link or refused_link has found it out in this process.
/// Reads one number unless the description has such a mount point.
[[nodiscard]] Result<void> links_lead_on(const Place& place, const Storage& storage);

/// For the link that was just made at `place`: looks up what it leads to, as an open does, and compares its text with
/// `destination`, which need not exist. Fails with `system` and the reason when a program would not get there; the
/// caller removes the link. Later calls of links_lead_on for this file system then fail at once.
[[nodiscard]] Result<void> check_link(const Place& place, const std::string& destination);

/// The failure of symlink(2) at `place` with `failure`, an errno. A file system without links is remembered.
[[nodiscard]] tl::unexpected<Error> refused_link(const Place& place, int failure);

}  // namespace iosig
