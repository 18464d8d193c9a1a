// Copies a file's content and attributes, and proves that the copy is the same.
#pragma once

#include <cstdint>
#include <functional>

#include "iosig/base/result.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Told now and then how far a long step is: `doing` is "copying" or "verifying".
using CopyProgress = std::function<void(const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Copies all of `from` into the empty file `to`; holes stay holes. Both are descriptors. A full disk is `infeasible`.
[[nodiscard]] Result<void> copy_content(int from, int to, const CopyProgress& progress);

/// Whether both files hold the same bytes.
[[nodiscard]] Result<bool> same_content(int a, int b, const CopyProgress& progress);

/// Owner and group (as far as this user may), mode, extended attributes and times (as far as the file system has them).
/// The group that any new file of this user has was not chosen: then `to` keeps the one that its directory (set-gid)
/// gave it.
void copy_attributes(int from, int to);

/// Creates the file at `to`, which must not exist, as a copy of `data` in content and attributes, syncs it, reads it
/// back from the device and compares. Returns the open copy; a copy that failed stays behind, for the caller to remove.
/// `infeasible`: no room, or the data changed meanwhile.
[[nodiscard]] Result<Fd> copy_verified(const Fd& data, const Place& to, const CopyProgress& progress);

}  // namespace iosig
