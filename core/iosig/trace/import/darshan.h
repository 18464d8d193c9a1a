// Reads the accesses that Darshan's extended tracing (DXT) recorded: one call of a trace for each DXT segment.
//
//     DXT_POSIX, rank 3, write, offset 4096, length 512, 0.5 s to 0.7 s    write of rank 3 at 4096, 512 bytes
//
// A process is a rank on a host; the log has no process ids. DXT does not tell which call an access was: `read` and
// `write` stand for all of POSIX. The counters of the MPI-IO module tell whether all accesses of a rank to a file were
// collective, independent, split or nonblocking. A POSIX access is a child of the MPI-IO access of its rank and file
// (and thread, if the log has them) during which it was made.
//
// What DXT dropped is known from the counters, and counted as lost. Of files without segments in a module, and of logs
// without any, the trace gets the counters (trace/counters.h): sums, no single accesses.
//
// Memory: 48 bytes for each segment of MPI-IO and for each segment of the rank that has most.
#pragma once

#include "iosig/trace/import/import.h"

namespace iosig::trace {

/// Adds the accesses of one log. Fails with `bad_input`, naming file and byte, if it is no log that can be read, or has
/// neither segments nor counters. Damage after the first segment is a remark, as are segments that cannot be.
[[nodiscard]] Result<void> import_darshan(const std::string& path, TraceWriter& writer, ImportNotes& notes);

}  // namespace iosig::trace
