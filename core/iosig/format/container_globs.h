// Which files a glob of containers leaves out, however a user gives it: --container, --containers, a rules file.
#pragma once

#include <string_view>

namespace iosig {

/// Whether the file is one that several processes share as memory, by the name that a known program gives it: the index
/// of SQLite's write-ahead log, OMPIO's shared file pointer, LMDB's files. They open it before any of them maps it, so
/// that it must be an ordinary file from the beginning. A glob without `*`, `?` and `[` names what the user wants: then
/// false.
[[nodiscard]] bool is_shared_memory(std::string_view glob, std::string_view path);

}  // namespace iosig
