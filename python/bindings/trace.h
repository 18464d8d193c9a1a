// Traces for Python: iosig.trace.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_trace(nanobind::module_& module);  ///< Traces, AccessStream

}  // namespace iosig::python
