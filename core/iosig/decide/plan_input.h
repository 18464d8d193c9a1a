// The input of a plan: files divided into regions, and for each window the requests of each region, as groups.
//
// Pure. Source: docs/references.md#h2dp section 3.3. Fixed windows are counted from the first request on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/decide/migration.h"
#include "iosig/decide/regions.h"
#include "iosig/model/pattern.h"
#include "iosig/model/plan.h"
#include "iosig/model/striping.h"
#include "iosig/simulate/plan.h"

namespace iosig {

struct PlanGranularity {
  double window_s = default_window_s;  ///< > 0
  std::uint64_t region_bytes = default_region_bytes;
  bool is_adaptive = false;       ///< regions are cut where the hotness changes, `region_bytes` at most
  bool joins_windows = false;     ///< that use the regions alike (decide/adaptive_windows)
  const Plan* current = nullptr;  ///< its files keep their regions (decide/plan_current)
};

struct PlanInput {
  struct Window {
    double start_s = 0, end_s = 0;
    std::vector<Region> regions;  ///< as PlanInput::regions
  };
  double window_s = 0;  ///< 0: one window of unknown length
  std::vector<PlannedFile> files;
  std::vector<PlannedRegion> regions;  ///< of all files
  std::vector<Window> windows;
  /// The stripes of each of `regions` before the first window; none: the region does not exist yet. Empty: the first
  /// window may begin with any layout.
  std::vector<Stripes> current = {};
  /// Requests of each window at some moments (decide/trial), with which layouts are tried. Empty: only the regions'
  /// groups are known.
  std::vector<simulate::WindowRequests> moments = {};
};

/// Windows times regions of a plan; more would take hours.
inline constexpr std::uint64_t max_placements = 1U << 20;

/// Collects requests in any order. Memory: 40 bytes a request.
class PlanCollector {
 public:
  /// Drops empty requests. Fails with `bad_input` if the request ends beyond 2^63 - 1 or its start is no number.
  [[nodiscard]] Result<void> add(std::string_view path, const Request& request);
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

  /// Files are in the order of their names. Fails with `infeasible` if there is no request, and with `usage` if there
  /// would be more than max_placements.
  [[nodiscard]] Result<PlanInput> finish(const PlanGranularity& granularity);

  /// After finish(): the requests of each window of `input`, cut at the regions. Those of each process are in the order
  /// of their starts.
  [[nodiscard]] std::vector<std::vector<RegionRequest>> requests_of(const PlanInput& input) const;

 private:
  std::map<std::string, std::vector<Request>, std::less<>> files_;
  std::uint64_t requests_ = 0;
};

/// All accesses of `pattern` in one window. Time as RegionCollector::add: not proportional to the number of accesses.
/// The file ends with the last access. Fails as RegionCollector does, and with `usage` if there would be
/// more than max_placements.
[[nodiscard]] Result<PlanInput> plan_input(std::string_view path, const Pattern& pattern, bool is_write,
                                           const PlanGranularity& granularity = {});

}  // namespace iosig
