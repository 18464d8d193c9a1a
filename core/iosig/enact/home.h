// The directory at home: the one in which a redirect's link was made. A program may rename it, and while its file
// system is not mounted another directory may stand at its path. A link that is not found in the wrong directory is not
// lost, and its data are not without a link.
#pragma once

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Lets the entry tell which directory `link` is in.
void record_home(JournalEntry& entry, const Place& link);

/// The entry with the path that its link has now, if a program renamed its directory, or one above, without moving it
/// to another parent; else as it is.
[[nodiscard]] JournalEntry at_home(JournalEntry entry);

/// For an entry whose link was not found: whether its directory was looked at, or is proven gone. Fails as `system`
/// where neither is sure, because its file system may not be mounted.
[[nodiscard]] Result<void> check_home(const JournalEntry& entry);

}  // namespace iosig
