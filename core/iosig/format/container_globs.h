// The files that a glob of containers excludes, for all ways to give it: --container, --containers, a rules file.
#pragma once

#include <string_view>

namespace iosig {

/// Returns whether the file is shared memory of several processes, judged by the name that a known program gives it:
/// the index of SQLite's write-ahead log, OMPIO's shared file pointer, LMDB's files. Processes open such a file before
/// they map it, so it must be an ordinary file from the start. Returns false for a glob without `*`, `?` and `[`,
/// because the user named the file explicitly.
[[nodiscard]] bool is_shared_memory(std::string_view glob, std::string_view path);

}  // namespace iosig
