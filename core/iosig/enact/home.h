// The home directory of a redirect: the directory in which its link was created. A program may rename it, and while its
// file system is not mounted, another directory may be at its path. A link that is missing from the wrong directory is
// therefore not lost.
#pragma once

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Records in the entry which directory `link` is in.
void record_home(JournalEntry& entry, const Place& link);

/// Returns the entry with the current path of its link if a program renamed the link's directory, or one above it,
/// within the same parent; otherwise unchanged.
[[nodiscard]] JournalEntry at_home(JournalEntry entry);

/// Checks, for an entry whose link was not found, that its directory was searched or is provably gone. Fails as
/// `system` otherwise, because its file system may not be mounted.
[[nodiscard]] Result<void> check_home(const JournalEntry& entry);

}  // namespace iosig
