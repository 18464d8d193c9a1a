// A file without a name: what a probe writes into, gone with its descriptor even after kill -9.
#pragma once

#include <string>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig {

/// Opens a new, empty file for reading and writing on the file system of `folder`.
/// O_TMPFILE; where a file system knows no such files, a named one that is unlinked at once.
[[nodiscard]] Result<Fd> open_scratch_file(const std::string& folder);

}  // namespace iosig
