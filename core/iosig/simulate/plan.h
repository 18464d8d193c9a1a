// Simulates the requests of a plan: with the regions where the plan puts them, and where they would lie otherwise.
//
// Every process sends its requests one after the other, without a pause, as the plan's predictions assume. A window
// begins when all requests of the one before it have ended. Moves of data between windows are not simulated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/model/plan.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"
#include "iosig/simulate/engine.h"

namespace iosig::simulate {

/// Requests of one window.
struct WindowRequests {
  std::vector<RegionRequest> requests;  ///< those of each process in the order in which it sends them
  double times = 1;                     ///< how many requests of the window each of them stands for
};

inline constexpr std::uint64_t default_max_drawn = 1U << 16;

/// Returns the requests of a window of which only the groups are known: all, or `max_drawn` > 0 of them, evenly drawn.
/// Request n is sent by process n modulo `processes`. spread: in an order drawn at random; together: one region after
/// the other. Deterministic.
[[nodiscard]] WindowRequests drawn_requests(std::span<const Region> regions, std::uint32_t processes,
                                            Contention contention, std::uint64_t max_drawn = default_max_drawn);

/// Deals the requests of a trace to `processes` in turn, if that are not the processes that sent them.
void deal(std::vector<RegionRequest>& requests, std::uint32_t processes);

inline constexpr std::uint64_t usual_stripe_bytes = std::uint64_t{64} << 10U;

/// Returns the stripes of each region of a plan if all classes get stripes of 64 KB (PVFS's default). Regions for which
/// some class has no room left lie on the others, without it; the regions with room are drawn.
[[nodiscard]] std::vector<Stripes> usual_stripes(const Plan& plan);

/// Simulates requests with each of `layouts`, the stripes of every region, one after the other. `lengths`: of the
/// regions. Fails with `usage` if there are not as many stripes as regions, or if a request is outside of its region;
/// and with `infeasible` if all regions together are longer than 2^62.
[[nodiscard]] Result<std::vector<Totals>> run(const Servers& servers, std::span<const std::uint64_t> lengths,
                                              std::span<const RegionRequest> requests,
                                              std::span<const std::vector<Stripes>> layouts);

struct SimulatedWindow {
  std::uint64_t requests = 0;  ///< that were simulated
  double bytes = 0;            ///< of all requests of the window
  double seconds = 0;          ///< for all requests, by the plan
  double baseline_s = 0;       ///< with the other layout
};

/// Simulates each window twice. `baseline`: the stripes of each region in the other layout, for all windows.
///
/// Fails with `usage` if there are not as many windows or regions as in the plan, and as the function above.
[[nodiscard]] Result<std::vector<SimulatedWindow>> run(const Plan& plan, std::span<const WindowRequests> windows,
                                                       std::span<const Stripes> baseline);

}  // namespace iosig::simulate
