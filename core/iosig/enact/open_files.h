// Finds the redirected files that processes have open, from /proc.
#pragma once

#include <map>
#include <string>

#include "iosig/enact/destination.h"

namespace iosig {

/// Path below a directory of this user -> a process that has it open or as its working directory. Includes only
/// processes that this user may inspect.
using OpenFiles = std::map<std::string, int, std::less<>>;
[[nodiscard]] OpenFiles open_redirected_files();

/// Returns a process that has `path` or a file below it open; 0: none.
[[nodiscard]] int user_of(const OpenFiles& open, const std::string& path);

/// Like user_of(), but checks again now, for the entry whose lock the caller holds. `open` is from the start of the
/// run, when another run of iosig may have had the file open to settle it.
[[nodiscard]] int present_user_of(const OpenFiles& open, const std::string& path);

/// Whether the process runs the executable file of this process.
[[nodiscard]] bool runs_this_program(int pid);

/// Whether a process other than this one, of those that this user may inspect, has the open file open by the same path.
[[nodiscard]] bool is_open_in_another_process(int file);

/// Whether a program has the data or a companion open now, tested with leases. Also finds processes that /proc hides,
/// and programs that opened the files after `open_redirected_files`.
[[nodiscard]] bool is_in_use(const Destination& destination);

}  // namespace iosig
