// Placement over unlike servers for Python, over NumPy arrays: iosig.striping.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_striping(nanobind::module_& module);  ///< Servers, request_costs, search_stripes, plan_regions

}  // namespace iosig::python
