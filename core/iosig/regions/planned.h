// A plan as placements of the region map.
#pragma once

#include <vector>

#include "iosig/model/plan.h"
#include "iosig/regions/region_map.h"

namespace iosig::regions {

/// Returns a placement for each file of a checked plan. The target of a region is "r7-w2": its number, and the window
/// in which it got its layout. A moved region is thus another file.
[[nodiscard]] std::vector<MappedPlacement> placements_of(const Plan& plan);

}  // namespace iosig::regions
