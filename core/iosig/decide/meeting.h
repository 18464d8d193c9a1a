// Layouts for requests that meet: all processes want the same bytes at the same time.
//
// Then the servers of these bytes serve one request after the other, while the others are idle: what one request costs
// its busiest server decides, not how evenly different requests are spread. A request must therefore be divided so that
// all its servers end at the same time (fill_servers), whatever start-ups that costs.
#pragma once

#include <span>
#include <vector>

#include "iosig/decide/selection.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

/// The options of each region, the same in all windows; `windows[i]` are the regions of window i with the same bounds.
/// One option for each set of classes: the largest request of all windows in one period, divided by fill_servers,
/// rounded up to `unit_bytes`. Option 0: home_class alone. `load` and `seconds` as those of layout_options; since a
/// request is a period, the servers' loads are those of requests that meet.
[[nodiscard]] std::vector<std::vector<RegionOptions>> meeting_options(std::span<const std::vector<Region>> windows,
                                                                      const Servers& servers,
                                                                      std::uint64_t unit_bytes = 512);

}  // namespace iosig
