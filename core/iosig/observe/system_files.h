// Which files belong to the system.
#pragma once

#include <string_view>

namespace iosig::observe {

/// Whether the path is below a directory of the system (/usr, /etc, /proc, ...), whose files a job only reads and
/// nobody places. Those in /dev/shm are the job's, except the memory that MPI libraries and others share by name.
[[nodiscard]] bool is_of_system(std::string_view path);

}  // namespace iosig::observe
