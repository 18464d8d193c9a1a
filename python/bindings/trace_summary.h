// What `iosig report` shows of traces: iosig.report.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_trace_summary(nanobind::module_& module);  ///< summarize_traces

}  // namespace iosig::python
