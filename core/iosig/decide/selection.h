// Selects which regions use which servers: H2DP's ranking, and ours.
//
// Pure, deterministic. Takes checked Servers. A class without capacity_bytes has room for all regions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/decide/striping.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

/// A layout that a region could have.
struct LayoutOption {
  Stripes stripes;
  Load load;                                ///< of the region's requests
  std::vector<std::uint64_t> server_bytes;  ///< of each class: the most bytes on one server
  double seconds = 0;                       ///< paper: Table 2 or 3 over the requests; ours: busiest_s
};

/// The layouts among which a region's is selected; at least one. Option 0 is the one that uses least scarce space: only
/// the class with the most room.
struct RegionOptions {
  std::vector<LayoutOption> options;
};

/// One number for each region.
struct RegionSelection {
  std::vector<std::uint32_t> option;        ///< the index of the region's layout
  double seconds = 0;                       ///< predicted for all regions
  double bound_s = 0;                       ///< no selection among these options takes less; 0: not computed
  std::vector<std::uint64_t> server_bytes;  ///< used on each server of each class
};

/// Returns the class of servers that regions live on by default: that with the largest total capacity, the first at a
/// tie.
[[nodiscard]] std::uint32_t home_class(const Servers& servers);

/// Whether Load::servers of options may be kept for so many regions, or in all windows together. Otherwise there is no
/// room for it, and the servers of a class count as equally loaded by each region.
[[nodiscard]] bool keeps_server_loads(std::size_t regions, const Servers& servers);

/// H2DP's two options of each region: all HServers with stripes of r / m (option 0), and the hybrid pair of
/// `stripes` (paper_stripes). `seconds` are those of Tables 3 and 2.
[[nodiscard]] std::vector<RegionOptions> paper_options(std::span<const Region> regions,
                                                       std::span<const StripeChoice> stripes, const Servers& servers);

/// H2DP, section 3.6: regions by descending benefit T_H - T_{H+S} (the earlier at a tie); each that still has room and
/// a benefit above 0 becomes hybrid, others are skipped. `seconds` is the sum over the regions.
[[nodiscard]] RegionSelection paper_selection(std::span<const RegionOptions> regions, const Servers& servers);

/// Our options: the best stripes on each class alone (home_class first), and on all classes; equal ones once.
/// Regions with alike groups (counts in like proportions) are searched once; many unlike ones less thoroughly, so that
/// all searches together cost at most some million requests. Parallel over the regions.
[[nodiscard]] std::vector<RegionOptions> layout_options(std::span<const Region> regions, const Servers& servers,
                                                        const StripeOptions& options = {}, unsigned threads = 0);

/// Selects the options with the least loaded_seconds, within every class's capacity.
///
/// together: the regions' times add up, a multiple-choice knapsack: benefit per byte of scarce space on the convex hull
/// of each region's options, then knapsack() where there are two options. spread: the busiest server counts, so how
/// full the fast servers should be is part of the answer; prices on each class's time (multiplicative weights), then
/// single moves and pairs; all selections where they are few. Ties go to option 0. Where not even option 0 fits
/// everywhere, fails with `infeasible`.
[[nodiscard]] Result<RegionSelection> select_regions(std::span<const RegionOptions> regions, const Servers& servers,
                                                     Contention contention);

struct KnapsackItem {
  double benefit = 0;  ///< <= 0: never taken
  std::uint64_t bytes = 0;
};

/// Returns which items to take: total bytes <= room, benefit at least 0.99 of the greatest possible, and the greatest
/// if all sizes are equal. Ties go to the earlier item.
///
/// Greedy by benefit per byte; where its bound leaves more than 0.5 %, branch and bound; where that takes too long, a
/// dynamic program over rounded benefits.
[[nodiscard]] std::vector<bool> knapsack(std::span<const KnapsackItem> items, std::uint64_t room);

}  // namespace iosig
