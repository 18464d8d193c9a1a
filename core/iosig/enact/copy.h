// Copies a file's content and attributes, and verifies the copy.
#pragma once

#include <cstdint>
#include <functional>

#include "iosig/base/result.h"
#include "iosig/enact/place.h"

namespace iosig {

/// Reports the progress of a long step: `doing` is "copying" or "verifying".
using CopyProgress = std::function<void(const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// How a copy is compared with the data before it takes their place.
enum class Verify {
  none,  ///< not at all: every call succeeded, and the copy was flushed
  copy,  ///< each piece is read back through the page cache when it was written
  full,  ///< all of it is read back from the device when it was flushed
};

/// Copies all of the descriptor `from` to the empty file `to`, and starts to flush it. Preserves holes. Shares the
/// blocks where the file system can (reflink). With `Verify::copy`, compares each piece that it writes; one that
/// differs is a `system` error. A full file system is `infeasible`.
[[nodiscard]] Result<void> copy_content(int from, int to, const CopyProgress& progress, Verify verify = Verify::none);

/// Whether both files hold the same bytes.
[[nodiscard]] Result<bool> same_content(int a, int b, const CopyProgress& progress);

/// Copies owner and group (as far as this user may), mode, extended attributes and times (as far as the file system has
/// them). Fails as `infeasible` if an attribute of the user's does not fit. If the group of `from` is this user's
/// default group, nobody chose it: then `to` keeps the group that its set-gid directory gave it.
[[nodiscard]] Result<void> copy_attributes(int from, int to);

/// Creates the file at `to`, which must not exist, as a copy of `data` in content and attributes. Flushes and verifies
/// it. Returns the open copy. On failure the copy remains; the caller removes it. `infeasible`: no space, or the data
/// changed meanwhile.
[[nodiscard]] Result<Fd> copy_verified(const Fd& data, const Place& to, Verify verify, const CopyProgress& progress);

}  // namespace iosig
