#include "iosig/decide/plan.h"

#include <algorithm>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/meeting.h"
#include "iosig/decide/selection.h"
#include "iosig/decide/striping.h"
#include "iosig/decide/trial.h"

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
std::vector<PlannedMove> moves_of(const PaperMoves& listed, std::span<const Stripes> before,
                                  std::span<const Stripes> after) {
  std::vector<PlannedMove> moves;
  for (const auto* const list : {&listed.out, &listed.in})
    for (const std::uint32_t region : *list)
      if (!before[region].empty()) moves.push_back({region, before[region], after[region]});
  return moves;
}

std::vector<Stripes> stripes_of(const PlannedWindow& window) {
  std::vector<Stripes> stripes;
  for (const RegionPlacement& each : window.placements) stripes.push_back(each.stripe_bytes);
  return stripes;
}

Result<Plan> paper_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options) {
  if (auto sound = check_order(described.servers); !sound) return pass_on(sound.error());
  Plan plan = plan_without_windows(input, described, options);
  plan.home = 0;  // the paper's HServers
  const Servers& servers = described.servers;
  std::vector<std::vector<bool>> is_hybrid;  // of what is in place, then of the windows
  if (!input.current.empty()) {
    std::vector<bool>& hybrid = is_hybrid.emplace_back();
    for (const Stripes& stripes : input.current) hybrid.push_back(stripes.size() > 1 && stripes[1] > 0);
  }
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
  const std::size_t first = input.current.empty() ? 1 : 0;  // with moves
  std::vector<Stripes> before = input.current.empty() ? stripes_of(plan.windows[0]) : input.current;
  for (std::size_t n = first; n < plan.windows.size(); ++n) {
    PlannedWindow& window = plan.windows[n];
    std::vector<Stripes> after = stripes_of(window);
    window.moves = moves_of(listed[n + 1 - first], before, after);
    before = std::move(after);
    std::vector<Load> copies;
    for (const PlannedMove& move : window.moves)
      copies.push_back(copy_load(servers, move.from, move.to, plan.regions[move.region].length_bytes));
    window.move_s = loaded_seconds(servers, copies, Contention::spread);
  }
  return plan;
}

// ---- ours ----------------------------------------------------------------------------------------------------------

std::vector<std::uint64_t> lengths_of(const PlanInput& input) {
  std::vector<std::uint64_t> lengths;
  for (const PlannedRegion& each : input.regions) lengths.push_back(each.length_bytes);
  return lengths;
}

double home_seconds(const std::vector<RegionOptions>& regions, const Servers& servers, Contention contention) {
  std::vector<Load> loads;
  for (const RegionOptions& each : regions) loads.push_back(each.options.front().load);
  return loaded_seconds(servers, loads, contention);
}

/// Returns the options in place, which it adds where they are missing: the same to all windows. Regions that do not
/// exist yet count as lying on the home class.
std::vector<std::uint32_t> options_in_place(std::span<const Stripes> current,
                                            std::span<const std::vector<Region>> regions, const Servers& servers,
                                            std::vector<std::vector<RegionOptions>>& windows) {
  std::vector<std::uint32_t> in_place;
  for (std::size_t n = 0; n < current.size(); ++n) {
    const auto& options = windows.front()[n].options;
    const auto known = std::ranges::find(options, current[n], &LayoutOption::stripes);
    in_place.push_back(current[n].empty() ? 0 : static_cast<std::uint32_t>(known - options.begin()));
    if (current[n].empty() || known != options.end()) continue;
    for (std::size_t window = 0; window < windows.size(); ++window) {
      LayoutOption added{current[n], load_of(servers, current[n], regions[window][n].groups),
                         bytes_on_classes(servers, current[n], regions[window][n].length)};
      added.seconds = busiest_s(servers, added.load);
      windows[window][n].options.push_back(std::move(added));
    }
  }
  return in_place;
}

/// The plan by the cost model alone.
Result<Plan> modelled_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options,
                           Contention contention, std::span<const std::vector<RegionOptions>> windows,
                           std::span<const std::uint32_t> in_place) {
  Plan plan = plan_without_windows(input, described, options);
  const Servers& servers = described.servers;
  const auto planned = plan_migration(windows, lengths_of(input), servers, contention, in_place, options.migration);
  if (!planned) return pass_on(planned.error());
  for (std::size_t n = 0; n < input.windows.size(); ++n) {
    PlannedWindow& made = plan.windows.emplace_back(window_of(input.windows[n], windows[n], (*planned)[n].option));
    made.seconds = (*planned)[n].seconds;
    made.move_s = (*planned)[n].move_s;
    made.home_s = home_seconds(windows[n], servers, contention);
    for (const MigrationStep& step : (*planned)[n].steps) {
      const auto& choices = windows[n][step.region].options;
      made.moves.push_back({step.region, choices[step.from].stripes, choices[step.to].stripes});
    }
  }
  return plan;
}

/// The plan in which all regions have the same stripes. `home`: a plan for the same input.
Plan even_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options,
               const Stripes& stripes, const Plan& home) {
  Plan plan = plan_without_windows(input, described, options);
  for (std::size_t number = 0; number < input.windows.size(); ++number) {
    const PlanInput::Window& window = input.windows[number];
    PlannedWindow& made = plan.windows.emplace_back();
    made.start_s = window.start_s;
    made.end_s = window.end_s;
    made.home_s = home.windows[number].home_s;
    std::vector<Load> loads;
    for (std::size_t n = 0; n < window.regions.size(); ++n) {
      loads.push_back(load_of(described.servers, stripes, window.regions[n].groups));
      made.placements.push_back({stripes, count_of(window.regions[n]), busiest_s(described.servers, loads.back()),
                                 home.windows[number].placements[n].home_s});
    }
    made.seconds = loaded_seconds(described.servers, loads, Contention::spread);
  }
  return plan;
}

WholeLayout layout_of(const Plan& plan) {
  WholeLayout layout;
  for (const PlannedWindow& window : plan.windows) {
    layout.stripes.push_back(stripes_of(window));
    layout.move_s += window.move_s;
  }
  return layout;
}

Result<TriedPlan> our_plan(const PlanInput& input, const DescribedServers& described, const PlanOptions& options) {
  using Chosen = PlanTrial::Chosen;
  const Servers& servers = described.servers;
  std::vector<std::vector<Region>> regions;
  for (const PlanInput::Window& window : input.windows) regions.push_back(window.regions);
  auto windows = same_options(regions, servers, {}, options.threads);
  auto in_place = options_in_place(input.current, regions, servers, windows);
  const auto modelled = [&](Contention contention) {
    return modelled_plan(input, described, options, contention, windows, in_place);
  };
  auto plan = modelled(options.contention.value_or(Contention::spread));
  if (!plan) return pass_on(plan.error());
  if (options.contention || input.moments.empty()) return TriedPlan{*std::move(plan), {}};

  std::vector<std::pair<Chosen, Plan>> plans{{Chosen::spread, *std::move(plan)}};
  auto together = modelled(Contention::together);
  if (!together) return pass_on(together.error());
  plans.emplace_back(Chosen::together, *std::move(together));
  windows = meeting_options(regions, servers);
  in_place = options_in_place(input.current, regions, servers, windows);
  auto meeting = modelled(Contention::together);
  if (!meeting) return pass_on(meeting.error());
  plans.emplace_back(Chosen::meeting, *std::move(meeting));

  const std::vector<std::uint64_t> lengths = lengths_of(input);
  std::vector<WholeLayout> layouts;
  for (const auto& [chosen, each] : plans) layouts.push_back(layout_of(each));
  std::vector<Stripes> even;
  if (input.current.empty()) even = even_layouts(lengths, servers, usual_length(input.moments));
  for (const Stripes& stripes : even) layouts.push_back({{std::vector(lengths.size(), stripes)}});
  const auto trial = best_by_trial(layouts, lengths, servers, input.moments);
  if (!trial && trial.error().kind == ErrorKind::infeasible)  // too long to simulate
    return TriedPlan{std::move(plans.front().second), {}};
  if (!trial) return pass_on(trial.error());
  PlanTrial told{Chosen::even, layouts.size(), trial->seconds, trial->first_s};
  if (trial->best >= plans.size())
    return TriedPlan{even_plan(input, described, options, even[trial->best - plans.size()], plans.front().second),
                     told};
  told.chosen = plans[trial->best].first;
  return TriedPlan{std::move(plans[trial->best].second), told};
}

}  // namespace

Result<TriedPlan> make_plan(const PlanInput& input, const DescribedServers& servers, const PlanOptions& options) {
  if (options.algorithm == PlanAlgorithm::ours) return our_plan(input, servers, options);
  auto plan = paper_plan(input, servers, options);
  if (!plan) return pass_on(plan.error());
  return TriedPlan{*std::move(plan), {}};
}

}  // namespace iosig
