// Globs of files, for all ways to give them: --container, --containers, a rules file; and the files that a glob of
// containers excludes.
#pragma once

#include <string>
#include <string_view>

namespace iosig {

/// Returns the glob of fnmatch(3) that matches `path` alone.
[[nodiscard]] std::string escaped_glob(std::string_view path);

/// Returns whether the file is shared memory of several processes, judged by the name that a known program gives it:
/// the index of SQLite's write-ahead log, OMPIO's shared file pointer, LMDB's files. Processes open such a file before
/// they map it, so it must be an ordinary file from the start. Returns false for a glob without `*`, `?` and `[`,
/// because the user named the file explicitly.
[[nodiscard]] bool is_shared_memory(std::string_view glob, std::string_view path);

}  // namespace iosig
