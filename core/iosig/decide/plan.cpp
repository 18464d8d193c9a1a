#include "iosig/decide/plan.h"

#include <algorithm>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/selection.h"
#include "iosig/decide/striping.h"

namespace iosig {
namespace {

std::uint64_t count_of(const Region& region) {
  std::uint64_t requests = 0;
  for (const RequestGroup& each : region.groups) requests += each.count;
  return requests;
}

Plan plan_without_windows(const PlanInput& input, const DescribedServers& servers, const PlanOptions& options) {
  Plan plan;
  plan.algorithm = options.algorithm;
  plan.application = options.application;
  plan.servers = servers.servers;
  plan.server_names = servers.names;
  plan.home = home_class(servers.servers);
  plan.window_s = input.window_s;
  plan.files = input.files;
  plan.regions = input.regions;
  return plan;
}

/// The window with its regions' chosen options; the times of the whole window are the caller's.
PlannedWindow window_of(const PlanInput::Window& window, const std::vector<RegionOptions>& regions,
                        const std::vector<std::uint32_t>& option) {
  PlannedWindow made;
  made.start_s = window.start_s;
  made.end_s = window.end_s;
  for (std::size_t n = 0; n < regions.size(); ++n) {
    const LayoutOption& chosen = regions[n].options[option[n]];
    made.placements.push_back(
        {chosen.stripes, count_of(window.regions[n]), chosen.seconds, regions[n].options.front().seconds});
  }
  return made;
}

// ---- the paper's ---------------------------------------------------------------------------------------------------

/// Refuses a first class that is faster than the second one: all regions would live on the few fast servers.
Result<void> check_order(const Servers& servers) {
  const auto seconds = [](const ServerClass& each) {  // a read and a write of a usual stripe
    constexpr double bytes = 64.0 * KiB;
    return each.read.startup_s + each.write.startup_s + bytes * (each.read.s_per_byte + each.write.s_per_byte);
  };
  if (servers.classes.size() != 2 || seconds(servers.classes[0]) >= seconds(servers.classes[1])) return {};
  return fail(ErrorKind::usage,
              "the paper's algorithm takes the first class for the slow servers, and '{}' is faster than '{}': put a "
              "server of '{}' first in the storage description",
              printable(servers.classes[0].name), printable(servers.classes[1].name),
              printable(servers.classes[1].name));
}

/// The moves of Algorithm 2 between two windows. The layouts are those of the windows.
std::vector<PlannedMove> moves_of(const PaperMoves& listed, const PlannedWindow& before, const PlannedWindow& after) {
  std::vector<PlannedMove> moves;
  for (const auto* const list : {&listed.out, &listed.in})
    for (const std::uint32_t region : *list)
      moves.push_back({region, before.placements[region].stripe_bytes, after.placements[region].stripe_bytes});
  return moves;
}

Result<Plan> paper_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options) {
  if (auto sound = check_order(described.servers); !sound) return pass_on(sound.error());
  Plan plan = plan_without_windows(input, described, options);
  plan.home = 0;  // the paper's HServers
  const Servers& servers = described.servers;
  std::vector<std::vector<bool>> is_hybrid;
  for (const PlanInput::Window& window : input.windows) {
    const auto stripes = paper_stripes(window.regions, servers, {.threads = options.threads});
    if (!stripes) return pass_on(stripes.error());
    const auto regions = paper_options(window.regions, *stripes, servers);
    const RegionSelection selection = paper_selection(regions, servers);
    PlannedWindow& made = plan.windows.emplace_back(window_of(window, regions, selection.option));
    made.seconds = selection.seconds;
    for (const RegionPlacement& each : made.placements) made.home_s += each.home_s;
    std::vector<bool>& hybrid = is_hybrid.emplace_back();
    for (const std::uint32_t option : selection.option) hybrid.push_back(option != 0);
  }
  const auto listed = paper_migration(is_hybrid);
  for (std::size_t n = 1; n < plan.windows.size(); ++n) {
    PlannedWindow& window = plan.windows[n];
    window.moves = moves_of(listed[n], plan.windows[n - 1], window);
    std::vector<Load> copies;
    for (const PlannedMove& move : window.moves)
      copies.push_back(copy_load(servers, move.from, move.to, plan.regions[move.region].length_bytes));
    window.move_s = loaded_seconds(servers, copies, Contention::spread);
  }
  return plan;
}

// ---- ours ----------------------------------------------------------------------------------------------------------

double home_seconds(const std::vector<RegionOptions>& regions, const Servers& servers, Contention contention) {
  std::vector<Load> loads;
  for (const RegionOptions& each : regions) loads.push_back(each.options.front().load);
  return loaded_seconds(servers, loads, contention);
}

Result<Plan> our_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options) {
  Plan plan = plan_without_windows(input, described, options);
  const Servers& servers = described.servers;
  std::vector<std::vector<Region>> regions;
  for (const PlanInput::Window& window : input.windows) regions.push_back(window.regions);
  std::vector<std::uint64_t> lengths;
  for (const PlannedRegion& each : input.regions) lengths.push_back(each.length_bytes);
  const auto windows = same_options(regions, servers, {}, options.threads);
  const auto planned = plan_migration(windows, lengths, servers, options.contention, {}, options.migration);
  if (!planned) return pass_on(planned.error());
  for (std::size_t n = 0; n < input.windows.size(); ++n) {
    PlannedWindow& made = plan.windows.emplace_back(window_of(input.windows[n], windows[n], (*planned)[n].option));
    made.seconds = (*planned)[n].seconds;
    made.move_s = (*planned)[n].move_s;
    made.home_s = home_seconds(windows[n], servers, options.contention);
    for (const MigrationStep& step : (*planned)[n].steps) {
      const auto& choices = windows[n][step.region].options;
      made.moves.push_back({step.region, choices[step.from].stripes, choices[step.to].stripes});
    }
  }
  return plan;
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input, const DescribedServers& servers, const PlanOptions& options) {
  return options.algorithm == PlanAlgorithm::paper ? paper_plan(input, servers, options)
                                                   : our_plan(input, servers, options);
}

}  // namespace iosig
