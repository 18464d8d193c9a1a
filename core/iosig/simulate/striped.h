// Servers by class and stripes by region (model/servers, model/striping) as the engine takes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"
#include "iosig/simulate/engine.h"
#include "iosig/simulate/hot_regions.h"

namespace iosig::simulate {

/// What a class's disks do that the cost model averages out.
struct DiskHabit {
  double spread = 0;      ///< of start-ups to another region (DiskCosts)
  double near_share = 1;  ///< start-up within a region, as a share of that to another
};

/// The servers, the network and a client node, without clients and layouts. Latency: one connection. A network of 0
/// seconds a byte becomes a link of 10^15 bytes/s. `habits`: one for each class, or none.
[[nodiscard]] Result<System> system_of(const Servers& servers, std::span<const DiskHabit> habits = {});

/// Places each region as `stripes[window][region]` says. Each class begins with another server in each region, as
/// StripeMap's rotation by the region's number; equal stripes share the layouts.
[[nodiscard]] Placement placement_of(const Servers& servers, std::span<const std::vector<Stripes>> stripes);

/// Returns the input of a plan: for each window its regions, each with the number of requests that are expected if the
/// workload issues `requests` in the window, as one scattered group (no group below half a request).
[[nodiscard]] std::vector<std::vector<Region>> regions_of(const HotRegions& workload, std::uint64_t requests);

}  // namespace iosig::simulate
