// Placements of regions and their simulation: iosig.contest.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_simulation(nanobind::module_& module);  ///< place_regions, simulate_regions, simulate_accesses

}  // namespace iosig::python
