// Accesses as the text of darshan-dxt-parser, for the tools that read it.
//
// A record for each file of a process and layer: DXT_POSIX for `posix`, DXT_MPIIO for `mpi-io`; in it the writes, then
// the reads, each in the order of their starts. Only calls that moved bytes, or met the end of the file, are there:
// DXT has no others, and no stdio. Segment lines are those of darshan-dxt-parser 3.2 to 3.4, "N/A" stands for an offset
// that is not known. Other values that a trace does not have are "UNKNOWN" (mount point, file system) or left out
// (uid). `file_id` is a hash of the path, not Darshan's.
//
// Times are seconds since the job began, if the trace was made of a Darshan log; else since the whole second in which
// the first call began. `start_time` is that time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/trace/trace.h"

namespace iosig::trace {

/// The fact of a process (Process::variables) that says when its job began: nanoseconds since 1970.
inline constexpr std::string_view job_start_key = "job_start_ns";

/// Calls that DXT cannot have.
struct DxtLeftOut {
  std::uint64_t stdio = 0;       ///< that moved bytes
  std::uint64_t unfinished = 0;  ///< reads and writes without an end
  std::uint64_t unnamed = 0;     ///< reads and writes of a file whose path is not known
  bool has_numbers = false;      ///< of several processes some have no rank: all got a number, from 0
};

/// Passes the text on in pieces. Reads the trace twice, and has 32 bytes for each access in a temporary file without a
/// name in `directory`. Memory: some 200 bytes for each record.
/// Fails as `put`, with `system` if the temporary file cannot be made or has no room.
[[nodiscard]] Result<DxtLeftOut> write_dxt_text(const Trace& trace, const Selection& selection,
                                                const std::string& directory,
                                                const std::function<Result<void>(std::string_view)>& put,
                                                std::vector<Error>& faults);

}  // namespace iosig::trace
