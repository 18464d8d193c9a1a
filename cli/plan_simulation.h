// `iosig plan --simulate`: what the plan predicts beside what the simulator finds, and the layout without the plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/cost/striping.h"
#include "iosig/model/plan.h"
#include "iosig/simulate/plan.h"
#include "plan_source.h"

namespace iosig::cli {

struct PlanSimulation {
  bool has_current = false;  ///< the baseline is the layout in place, not the usual one
  bool is_drawn = false;     ///< the requests come from a pattern
  std::vector<simulate::SimulatedWindow> windows;
};

/// Simulates a plan for `demand`, whose requests were kept.
[[nodiscard]] Result<PlanSimulation> simulate_plan(const Plan& plan, const PlanDemand& demand, Contention contention);

/// A line for each window, and for all.
[[nodiscard]] Table simulation_table(const Plan& plan, const PlanSimulation& simulation);
/// The line above the table.
[[nodiscard]] std::string simulation_title(const PlanSimulation& simulation);
[[nodiscard]] nlohmann::ordered_json simulation_json(const PlanSimulation& simulation);

}  // namespace iosig::cli
