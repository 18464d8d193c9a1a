// A plan as placements of the region map.
#pragma once

#include <span>
#include <vector>

#include "iosig/model/plan.h"
#include "iosig/regions/region_map.h"

namespace iosig::regions {

/// Returns a placement for each file of a checked plan. The target of a region is "r7-w2": its number, and the window
/// in which it got its layout. A moved region is thus another file.
[[nodiscard]] std::vector<MappedPlacement> placements_of(const Plan& plan);

/// Returns the placements of `stored`, as `current` left them, with the windows of `plan` behind theirs: a plan that
/// was made with `current` in place. Windows count on from the last one; a region that does not move keeps its target;
/// a file that `current` does not know has no regions in the windows before.
///
/// Fails with `bad_input` if the last windows of `stored` are not the last one of `current`, or if `stored` has a file
/// of `plan` that `current` does not have; and with `infeasible` if `stored` lacks a file of `current`, or the plans
/// are for other applications or numbers of processes.
[[nodiscard]] Result<std::vector<MappedPlacement>> continued_placements(const Plan& plan, const Plan& current,
                                                                        std::span<const MappedPlacement> stored);

}  // namespace iosig::regions
