// Redirects: creates a link where a program will open a new file, so its bytes are stored on another mount point.
// Creates directories there for a job's temporary files.
//
// The caller decides on the mount point; this is only the mechanism:
//
//   /home/ann/out.bin  ->  /dev/shm/.iosig-1000/5f0c9a3e11d2b764/out.bin
#pragma once

#include <optional>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Whether `place` is already on the file system of `mount_point`: a link would then be useless.
[[nodiscard]] Result<bool> lies_on(const Place& place, const std::string& mount_point);

/// Creates the link; the program's own open then creates the file behind it. Returns the journal entry, or no value if
/// another process created `place` first (symlinkat is atomic, so the loser of a race uses the winner's file).
///
/// Reserves the totalsize of the signature for the stream (enact/reserve.h). `infeasible`: that space has just been
/// reserved for another stream; choose again. `system` if a program cannot follow a link at `place`
/// (enact/link_check.h); everything is then undone.
///
/// The entry is written before the link is created. `prepare` also flushes it: a person waits, and the run that it
/// prepares may be long. The runtime does not, since a flush costs milliseconds in every open. If the machine crashes
/// and loses the entry, the link alone still leads to the data, and `iosig finalize PATH` settles it.
[[nodiscard]] Result<std::optional<JournalEntry>> make_link(const Place& place, const MountPoint& mount,
                                                            const Signature& signature, RedirectedBy by);

/// Creates a job directory with a unique name in the user directory, and returns its path. Journalled: `iosig status`
/// lists it, `iosig finalize` removes it once it is empty. Reserves space as for a link.
[[nodiscard]] Result<std::string> make_job_directory(const MountPoint& mount, const Signature& signature);

}  // namespace iosig
