// Reads what strace prints (strace_line.h): `strace -f -ttt -T -y -o FILE`, also -ff, and without -f, -T or -y.
//
// strace shows descriptors; the trace has paths, open files and offsets. They follow from what is done to descriptors:
// opens, duplicates, closes, exec, what children inherit and threads share, moves of the file offset. **If calls were
// left out (-e), derived offsets are wrong**: lseek, close, dup and fork must be there.
//
// What cannot be derived is left empty: the offset of an open file whose past is not in the trace (until lseek tells),
// and of appends to a file whose size no call told.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "iosig/trace/import/import.h"
#include "iosig/trace/import/line_input.h"

namespace iosig::trace {

struct StraceFile {
  LineInput input;
  std::optional<std::int32_t> pid;  ///< of the lines that name none: -ff makes a file for each process
};

/// Adds the calls of one strace command: one file, or all of -ff, which are merged by time.
/// Fails with `bad_input` if the first line of a file is not one of strace -ttt. Later lines that are malformed are
/// left out, with a remark.
[[nodiscard]] Result<void> import_strace(std::vector<StraceFile> files, TraceWriter& writer, ImportNotes& notes);

}  // namespace iosig::trace
