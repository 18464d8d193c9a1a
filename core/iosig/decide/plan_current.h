// The layout that is in place before the first window of a plan: that of the last window of an earlier plan.
//
// Pure. A file keeps the regions that it has; beyond them, it is divided anew.
#pragma once

#include <string_view>

#include "iosig/base/result.h"
#include "iosig/decide/plan_input.h"
#include "iosig/model/plan.h"
#include "iosig/model/servers.h"

namespace iosig {

/// Returns `bounds` of a file, but with the regions that the file has in `current`. If it has grown, its last region
/// grows with it, up to `region_bytes`; if it has shrunk, all its regions remain.
[[nodiscard]] RegionBounds kept_bounds(const Plan& current, std::string_view path, RegionBounds bounds,
                                       std::uint64_t region_bytes);

/// Sets PlanInput::current, and adds the files of `current` that no request uses: their regions take room, too.
/// `input` has regions by kept_bounds.
///
/// Fails with `usage` if `current` is for other servers: other classes, or another number of servers.
[[nodiscard]] Result<void> put_current(const Plan& current, const Servers& servers, PlanInput& input);

}  // namespace iosig
