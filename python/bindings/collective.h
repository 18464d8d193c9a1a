// The cost model of collective access for Python: iosig.generate.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

/// Adds transfer_work, transfer_seconds and fitted_transfer_costs.
void bind_collective(nanobind::module_& module);

}  // namespace iosig::python
