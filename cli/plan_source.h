// What `iosig plan` plans for: a trace, accesses as text, or a pattern.
#pragma once

#include <cstdint>
#include <string>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/decide/plan_input.h"

namespace iosig::cli {

struct PlanSource {
  std::string trace;            ///< directory of a trace, file of CSV or numbers, or a pattern description
  std::string layer = "posix";  ///< of traces
  std::string files;            ///< glob
  bool reads = false, writes = false;
  bool keeps_requests = false;  ///< for PlanDemand::requests
};

struct PlanDemand {
  PlanInput input;
  std::uint32_t processes = 1, processes_per_node = 1;  ///< as far as the source tells
  std::string application = {};                         ///< the program's name; "": not known
  /// By window, cut at the regions; empty if the source is a pattern, or they are not wanted.
  std::vector<std::vector<RegionRequest>> requests = {};
};

/// Reads the source. Notes what is missing or left out. Fails as its readers do, and with `infeasible` if nothing is
/// selected.
[[nodiscard]] Result<PlanDemand> plan_demand(const PlanSource& source, const PlanGranularity& granularity,
                                             const Console& console);

}  // namespace iosig::cli
