// The placements of H2DP's evaluation: those that it is compared with, H2DP as printed, and ours.
//
// Source: docs/references.md#h2dp sections 5.1 and 6. The paper describes DEF, PADP and PSA in a sentence each; what it
// leaves open is chosen here as the function's description says. Pure, deterministic. Takes checked Servers of two
// classes, HServers and SServers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/decide/selection.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

enum class PlacementPolicy { def, padp, psa, printed, ours };

/// "def", "padp", "psa", "printed", "ours"; nothing for another name.
[[nodiscard]] std::optional<PlacementPolicy> placement_policy_of(std::string_view name);

struct PolicyOptions {
  std::uint64_t seed = 1;                      ///< of the regions that DEF, PADP and PSA draw
  bool is_migrating = true;                    ///< printed, ours: false keeps the layout of window 0
  Contention contention = Contention::spread;  ///< ours, unless is_meeting
  bool is_meeting = false;  ///< ours: all processes want the same bytes at the same time (decide/meeting)
  double copy_weight = 1;   ///< ours: of moves (MigrationOptions)
  /// Ours, unless is_meeting: window 0's, by process in the order in which it sends them; other layouts are then tried
  /// with them (decide/trial).
  std::span<const RegionRequest> requests = {};
};

/// The stripes of each region, by window; and the regions that change in the order of their moves.
struct PlacedWindows {
  std::vector<std::vector<Stripes>> stripes;
  std::vector<std::vector<std::uint32_t>> order;
};

/// Places the regions of all windows; `windows[i]` has the same bounds for each i, and window i's requests.
///
/// Algorithm 1 is paper_stripes without a charge for idle servers: h = 0, which the paper allows "as long as doing so
/// benefits performance", never would otherwise.
/// def: stripes of 64 KB on all servers. padp: Algorithm 1's pair. psa: the pair on Algorithm 1's grid with 0 < s < h,
/// enough for the largest request, and the least sum of Table 2, among those with which the SServers hold all regions
/// (or, if there are none, the least part of each). These three draw the regions that are hybrid at random, as many as
/// the SServers have room for, and keep them; the others lie on the HServers, DEF's in stripes of 64 KB, the others' of
/// r / m. The stripes are those for window 0.
/// printed: paper_stripes and paper_selection for each window; Algorithm 2's regions go out, then in.
/// ours: plan_migration over same_options, or over meeting_options. With `requests`, the best by trial of this, of the
/// same for the other contention, and of even_layouts.
/// Fails with `usage` if there are not two classes, or no window; and as these functions do.
[[nodiscard]] Result<PlacedWindows> place_windows(PlacementPolicy policy, std::span<const std::vector<Region>> windows,
                                                  const Servers& servers, const PolicyOptions& options = {});

}  // namespace iosig
