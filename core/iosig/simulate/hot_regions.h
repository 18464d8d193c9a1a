// A workload with hot regions that move, and how fast it runs on data that are placed in a given way: the contest of
// placements (docs/howto/repro.md).
//
// A file of equal regions is accessed by processes on a node each, in closed loops. The popularity of the regions
// follows Zipf's law. At the end of each window a share of the regions, drawn at random, change places in popularity.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/simulate/engine.h"

namespace iosig::simulate {

struct HotRegions {
  std::uint32_t processes = 32;
  std::uint32_t regions = 512;
  std::uint64_t region_bytes = 64ULL << 20;
  std::uint64_t request_bytes = 512ULL << 10;  ///< offsets are multiples of it, uniform in the region
  bool is_write = false;
  double skew = 0.8;  ///< the k-th popular region has a weight of k^-skew; 0: all alike
  double drift = 0;   ///< share of the regions that change places after each window
  std::uint32_t windows = 4;
  double window_s = 10;
  /// In step, and the requests of a round all go to one block of one region: the processes collide. Otherwise each
  /// process draws its own.
  bool is_colliding = false;
  std::uint64_t seed = 1;
};

/// Regions times windows of a workload: it fits into memory.
inline constexpr std::uint64_t max_region_windows = 1U << 20U;

/// Returns nothing, or `usage`: a number that is negative, 0 or no number, or too many regions.
[[nodiscard]] Result<void> checked(const HotRegions& workload);

/// The share of requests that each region gets, by window and region; the sum over a window is 1.
[[nodiscard]] std::vector<std::vector<double>> shares_of(const HotRegions& workload);

/// Where the data are.
struct Placement {
  std::vector<Layout> layouts;
  /// The number of each region's layout by window, then region. What changes between windows is moved when the later
  /// one begins.
  std::vector<std::vector<std::uint32_t>> layout_of;
  /// By window: regions in the order in which they are moved; those that are not named follow in the order of their
  /// numbers. Empty: no window has an order. A region that does not change is passed over.
  std::vector<std::vector<std::uint32_t>> order;
};

/// How data are moved between windows. Each mover takes the next region, reads a chunk by the old layout, writes it by
/// the new one, and so on. The processes use the old layout until the whole region is moved.
struct Moving {
  std::uint32_t movers = 4;  ///< on a node each; 0: moving is free and takes no time
  std::uint64_t chunk_bytes = 1ULL << 20;
  /// The bytes that are moved of a region, as a share of it. A window that is simulated shorter than it is, by this
  /// share, has as much of its time taken by moves then.
  double share = 1;
};

struct Run {
  Totals totals;
  std::uint64_t moved_regions = 0;
};

/// Runs `workload` on `hardware`, of which the servers, the latency and the link of node 0 are used.
///
/// Every process has the same requests under every placement as long as it gets equally far. Fails with `usage` as the
/// engine does; for a skew, a drift or a time that is negative or not finite; for a count of 0; for requests that are
/// larger than a region; and for a placement without a layout for each region and window.
[[nodiscard]] Result<Run> run(const System& hardware, const HotRegions& workload, const Placement& placement,
                              const Moving& moving);

}  // namespace iosig::simulate
