// Reads the calls that Recorder 3 kept of the ranks of an MPI job, or of one process without MPI.
//
//     pwrite /data/a %p 4096 8192        write at 8192 of 4096 bytes, of the rank whose log this is
//
// Recorder keeps no results and no descriptors. All calls count as done, and reads and writes as having moved what they
// asked for. Offsets of `read` and `write` follow from the opens, seeks and transfers of the rank on the path, while it
// has the path open once. Bytes of MPI-IO calls are known for basic types.
//
// Each rank's times count from the start of its own recording, and only that of rank 0 is in the log.
//
// Memory: some 100 bytes for each signature of a rank, 8 bytes for each of its calls.
#pragma once

#include <string>

#include "iosig/trace/import/import.h"

namespace iosig::trace {

/// Adds the calls of a directory. Fails with `bad_input`, naming file and byte, if the metadata or what belongs to
/// rank 0 cannot be read. Damage of other ranks is a remark.
[[nodiscard]] Result<void> import_recorder(const std::string& path, TraceWriter& writer, ImportNotes& notes);

}  // namespace iosig::trace
