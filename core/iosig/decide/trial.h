// Chooses among layouts of all regions by a trial: the simulator runs some of the requests with each.
//
// The cost model adds up what each server does in a window, and does not know which requests are there at the same
// time. Processes that sweep over a file together use one stripe after the other: large stripes then leave most servers
// idle at any moment, though all have done equally much in the end. Pure, deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"
#include "iosig/simulate/plan.h"

namespace iosig {

/// Where all regions lie in all windows.
struct WholeLayout {
  std::vector<std::vector<Stripes>> stripes;  ///< by window and region; a single entry: the same in all windows
  double move_s = 0;                          ///< predicted for the moves between the windows
};

inline constexpr std::size_t max_trial_requests = 32768;  ///< of a window, simulated with each layout

/// Returns the requests at a few moments of a window: spans of consecutive requests of each process, evenly spread over
/// those it sends; about `most` in all, or all requests if there are fewer. `requests` of each process are in the order
/// in which it sends them.
[[nodiscard]] simulate::WindowRequests requests_at_moments(std::span<const RegionRequest> requests,
                                                           std::size_t most = max_trial_requests);

/// Returns layouts that all regions can have alike: stripes of 4 KB, 8 KB, ... 1 MB on the servers of home_class, and
/// on all others none, as much, or as much as they have room for. `lengths`: of the regions. `request_bytes`: of a
/// usual request; stripes so small that it would cover all servers twice are left out.
[[nodiscard]] std::vector<Stripes> even_layouts(std::span<const std::uint64_t> lengths, const Servers& servers,
                                                std::uint64_t request_bytes);

struct Trial {
  std::size_t best = 0;             ///< the number of a layout
  double seconds = 0, first_s = 0;  ///< simulated for all requests and moves: with `best`, and with layout 0
};

/// Finds the layout with which the requests of all windows, and the moves, take least time in the simulation; the
/// earliest of those that take at most 2 % more. All are tried with few requests, layout 0 and the best others with all
/// of `windows`; of many windows some. Fails as simulate::run does.
[[nodiscard]] Result<Trial> best_by_trial(std::span<const WholeLayout> layouts, std::span<const std::uint64_t> lengths,
                                          const Servers& servers, std::span<const simulate::WindowRequests> windows);

/// Returns the length that half of the requests do not exceed; 0: there are none.
[[nodiscard]] std::uint64_t usual_length(std::span<const simulate::WindowRequests> windows);

}  // namespace iosig
