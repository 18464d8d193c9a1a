// Redirects: puts a link where a program will open a new file, so that its bytes land on another mount point; makes
// directories there for a job's temporary files.
//
// Which mount point is the caller's decision; this is only the mechanism:
//
//   /home/ann/out.bin  ->  /dev/shm/.iosig-1000/5f0c9a3e11d2b764/out.bin
#pragma once

#include <optional>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Whether `place` is on the file system of `mount_point` already, so that a link would gain nothing.
[[nodiscard]] Result<bool> lies_on(const Place& place, const std::string& mount_point);

/// Makes the link; the program's own open then creates the file behind it. Returns the journal entry, or nothing when
/// somebody else put something at `place` first (symlinkat is atomic, so the loser of a race follows the winner).
///
/// The totalsize that the signature declares is reserved for the stream (enact/reserve.h). `infeasible`: that room has
/// just been reserved for another; choose again. `system` when a link at `place` leads a program nowhere
/// (enact/link_check.h): nothing is left of it then.
///
/// The entry is on its way to disk before the link is made. `prepare` also syncs it: a person waits, and the run it
/// prepares may be long. The runtime does not: a sync costs milliseconds in every open, and if the machine crashes and
/// loses the entry, the link alone still leads to the data and `iosig finalize PATH` settles it.
[[nodiscard]] Result<std::optional<JournalEntry>> make_link(const Place& place, const MountPoint& mount,
                                                            const Signature& signature, RedirectedBy by);

/// A fresh directory with a name of its own inside the user directory, for a job's temporary files; returns its path.
/// Journalled: `iosig status` lists it, `iosig finalize` removes it once it is empty. Room as for a link.
[[nodiscard]] Result<std::string> make_job_directory(const MountPoint& mount, const Signature& signature);

}  // namespace iosig
