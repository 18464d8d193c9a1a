// A traced run as infer and advise look at it: what the trace says of its processes, and what is missing in it.
#pragma once

#include <cstdint>

#include "iosig/observe/infer.h"
#include "iosig/trace/trace.h"

namespace iosig::cli {

/// Adds to the run's numbers those of the trace's processes, and to its state what is missing in the trace.
void add_trace(const trace::Trace& opened, observe::TracedRun& run);

/// Sets when the run was: nanoseconds since 1970, and from then to its end.
void set_times(std::int64_t started_ns, std::int64_t end_ns, observe::TracedRun& run);

}  // namespace iosig::cli
