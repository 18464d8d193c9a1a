// Which redirected files processes have open, as /proc tells.
#pragma once

#include <map>
#include <string>

#include "iosig/enact/destination.h"

namespace iosig {

/// Path below a directory of this user -> a process that has it open, or works there. Sees the processes that this user
/// may look into.
using OpenFiles = std::map<std::string, int, std::less<>>;
[[nodiscard]] OpenFiles open_redirected_files();

/// A process that has `path`, or a file below it, open; 0: none.
[[nodiscard]] int user_of(const OpenFiles& open, const std::string& path);

/// The same at this moment, for the entry whose lock the caller holds: `open` is from the start of the run, when
/// another run of iosig may have had the file open to settle it.
[[nodiscard]] int present_user_of(const OpenFiles& open, const std::string& path);

/// Whether a program has the data or a companion open at this moment, by asking for leases: finds what /proc hides, and
/// programs that opened them after `open_redirected_files`.
[[nodiscard]] bool is_in_use(const Destination& destination);

}  // namespace iosig
