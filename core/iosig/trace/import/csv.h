// Reads the CSV that `iosig export` writes (docs/formats/trace.md, Accesses), or that another program writes alike.
//
// Columns may be in any order. `call`, `path`, `start_ns`, `end_ns` and `result` are required. A process is a host and
// a pid. Ids and parents are kept, apart from the number of the part. CSV does not say which calls are on one open
// file: that follows from descriptors, opens and closes.
#pragma once

#include "iosig/trace/import/import.h"
#include "iosig/trace/import/line_input.h"

namespace iosig::trace {

/// Adds the calls of one file to `writer`. Its start_ns count from 1970: CSV does not have the date.
/// Fails with `bad_input`, naming file, line and column. A last line that was cut is a remark.
[[nodiscard]] Result<void> import_csv(LineInput& input, TraceWriter& writer, ImportNotes& notes);

}  // namespace iosig::trace
