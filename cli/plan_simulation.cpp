#include "plan_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using simulate::SimulatedWindow;

double rate_of(double bytes, double seconds) { return seconds > 0 ? bytes / seconds : 0; }

std::string gain_text(double baseline_s, double seconds) {
  return seconds > 0 ? fmt::format("{:+.0f} %", std::round(100 * (baseline_s / seconds - 1)) + 0.0) : "-";
}

std::vector<std::string> row_of(std::string window, double predicted_s, const SimulatedWindow& simulated) {
  if (simulated.requests == 0) return {std::move(window), "-", "-", "-", "-", "-", "-"};
  return {std::move(window),
          about_seconds(predicted_s),
          about_seconds(simulated.seconds),
          about_rate(rate_of(simulated.bytes, simulated.seconds)),
          about_seconds(simulated.baseline_s),
          about_rate(rate_of(simulated.bytes, simulated.baseline_s)),
          gain_text(simulated.baseline_s, simulated.seconds)};
}

}  // namespace

Result<PlanSimulation> simulate_plan(const Plan& plan, const PlanDemand& demand, Contention contention) {
  PlanSimulation made;
  made.is_drawn = demand.requests.empty();
  std::vector<simulate::WindowRequests> windows;
  for (const PlanInput::Window& window : demand.input.windows)
    if (made.is_drawn) windows.push_back(simulate::drawn_requests(window.regions, plan.servers.processes, contention));
  for (const std::vector<RegionRequest>& requests : demand.requests) {
    windows.push_back({requests});
    if (plan.servers.processes != demand.processes) simulate::deal(windows.back().requests, plan.servers.processes);
  }
  std::vector<Stripes> baseline = simulate::usual_stripes(plan);
  const std::vector<Stripes>& current = demand.input.current;
  made.has_current = !current.empty();
  for (std::size_t n = 0; n < current.size(); ++n)
    if (!current[n].empty()) baseline[n] = current[n];
  auto simulated = simulate::run(plan, windows, baseline);
  if (!simulated) return pass_on(simulated.error());
  made.windows = *std::move(simulated);
  return made;
}

std::string simulation_title(const PlanSimulation& simulation) {
  return fmt::format("simulated{}, and with {}:", simulation.is_drawn ? " with requests drawn from the pattern" : "",
                     simulation.has_current ? "what is in place" : "stripes of 64 KB over all servers (BASELINE)");
}

Table simulation_table(const Plan& plan, const PlanSimulation& simulation) {
  Table table({"WINDOW", "PREDICTED", "SIMULATED", "THROUGHPUT", "BASELINE", "THROUGHPUT", "GAIN"});
  SimulatedWindow all;
  double predicted_s = 0;
  for (std::size_t n = 0; n < simulation.windows.size(); ++n) {
    const SimulatedWindow& each = simulation.windows[n];
    table.add(row_of(fmt::format("{}", n), plan.windows[n].seconds, each));
    all.requests += each.requests;
    all.bytes += each.bytes;
    all.seconds += each.seconds;
    all.baseline_s += each.baseline_s;
    predicted_s += plan.windows[n].seconds;
  }
  if (simulation.windows.size() > 1) table.add(row_of("all", predicted_s, all));
  return table;
}

ordered_json simulation_json(const PlanSimulation& simulation) {
  ordered_json windows = ordered_json::array();
  for (const SimulatedWindow& each : simulation.windows)
    windows.push_back({{"requests", each.requests},
                       {"bytes", each.bytes},
                       {"simulated_s", each.seconds},
                       {"baseline_s", each.baseline_s},
                       {"simulated_bytes_per_s", rate_of(each.bytes, each.seconds)},
                       {"baseline_bytes_per_s", rate_of(each.bytes, each.baseline_s)}});
  return {{"baseline", simulation.has_current ? "current" : "default"},
          {"requests", simulation.is_drawn ? "drawn" : "traced"},
          {"windows", std::move(windows)}};
}

}  // namespace iosig::cli
