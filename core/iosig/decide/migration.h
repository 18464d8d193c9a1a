// Plans moves of regions between windows: Algorithm 2 of the H2DP paper, and ours.
//
// Pure, deterministic. A window's layout is one option for each region, from the same RegionOptions in all windows: the
// stripes of an option must not differ between windows, only its load and seconds. Use same_options.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/decide/selection.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

inline constexpr double default_window_s = 600;  ///< H2DP, section 3.3

/// Half-open range of positions in the requests sorted by start.
struct Window {
  double start_s = 0, end_s = 0;
  std::size_t first = 0, last = 0;
};

/// Sorts `requests` by start (stable), and returns consecutive windows of `window_s` > 0 from the first start on, also
/// empty ones. Starts may be negative. Fails with `usage` if there would be more than 2^20, and with `bad_input` if a
/// start is no number.
[[nodiscard]] Result<std::vector<Window>> fixed_windows(std::vector<Request>& requests,
                                                        double window_s = default_window_s);

/// What Algorithm 2 lists for window i: regions that leave the hybrid servers, and regions that come to them.
struct PaperMoves {
  std::vector<std::uint32_t> out, in;
};

/// Algorithm 2 as printed. `is_hybrid[i][region]`: the region's place in window i. Entry 0 is empty. It gives no order
/// of outs and ins, and lists no region that stays hybrid with other stripes.
[[nodiscard]] std::vector<PaperMoves> paper_migration(std::span<const std::vector<bool>> is_hybrid);

/// One region's change of layout. Its data exist twice until the step ends.
struct MigrationStep {
  std::uint32_t region = 0;
  std::uint32_t from = 0, to = 0;  ///< options
  std::uint64_t bytes = 0;         ///< of the region, all of which is copied
  bool is_out = false;             ///< frees scarce space
};

struct MigrationOptions {
  /// How often the last window's requests are expected to come again, counting that window: >= 1. Later windows that
  /// are known count as they are.
  std::uint32_t horizon = 1;
  double copy_weight = 1;  ///< of a copy's time against that of requests, >= 0; 0: moves are free
};

struct WindowPlan {
  std::vector<std::uint32_t> option;  ///< of each region in this window
  std::vector<MigrationStep> steps;   ///< before it, in this order
  double seconds = 0;                 ///< predicted for the requests
  double move_s = 0;                  ///< predicted for the steps, as if no requests came meanwhile
};

/// Returns the load of copying a region of `length` bytes from one layout to another: each byte is read and written
/// once, in long transfers, with one start-up of each server that is read or written. No client takes part.
[[nodiscard]] Load copy_load(const Servers& servers, const Stripes& from, const Stripes& to, std::uint64_t length);

/// Plans all windows so that requests and moves together take little time; never more than never moving, or than
/// selecting each window on its own.
///
/// `windows[i][region]`: the options with window i's loads. `lengths`: of the regions. `current`: the options in place
/// before window 0, or empty if window 0 may begin with any layout. Hysteresis: what a move costs counts against what
/// it saves in the windows ahead; looks 1, 2, 4, ... windows ahead (less far if there are very many), and takes the
/// plan with least total time. Steps: outs before ins; at no step does any server hold more than its capacity, the copy
/// in progress included. A change for which there is no such order is left out. Incremental: called with the layout in
/// place and one window, it plans that window's steps. Fails as select_regions does, and with `usage` if sizes or
/// options of windows differ.
[[nodiscard]] Result<std::vector<WindowPlan>> plan_migration(std::span<const std::vector<RegionOptions>> windows,
                                                             std::span<const std::uint64_t> lengths,
                                                             const Servers& servers, Contention contention,
                                                             std::span<const std::uint32_t> current = {},
                                                             const MigrationOptions& options = {});

/// Orders the changes between two layouts as plan_migration does. Changes without room are left out of the steps, and
/// `to` is corrected to what results.
[[nodiscard]] std::vector<MigrationStep> ordered_steps(std::span<const RegionOptions> regions,
                                                       std::span<const std::uint64_t> lengths, const Servers& servers,
                                                       std::span<const std::uint32_t> from,
                                                       std::vector<std::uint32_t>& to);

/// Makes the options of all windows the same: for each region the union of the stripes for all windows' requests
/// together and for each window's, at most 8, each with the load of every window's requests. `regions[i]`: the regions
/// of window i, with the same bounds in all windows.
[[nodiscard]] std::vector<std::vector<RegionOptions>> same_options(std::span<const std::vector<Region>> regions,
                                                                   const Servers& servers,
                                                                   const StripeOptions& options = {},
                                                                   unsigned threads = 0);

}  // namespace iosig
