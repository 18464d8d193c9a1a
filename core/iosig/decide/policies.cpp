#include "iosig/decide/policies.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "iosig/base/mix.h"
#include "iosig/base/units.h"
#include "iosig/decide/meeting.h"
#include "iosig/decide/migration.h"
#include "iosig/decide/striping.h"
#include "iosig/decide/trial.h"

namespace iosig {
namespace {

constexpr std::uint64_t default_stripe_bytes = 64 * KiB, step_bytes = 4 * KiB;

constexpr std::array<std::pair<std::string_view, PlacementPolicy>, 5> policy_names{
    {{"def", PlacementPolicy::def},
     {"padp", PlacementPolicy::padp},
     {"psa", PlacementPolicy::psa},
     {"printed", PlacementPolicy::printed},
     {"ours", PlacementPolicy::ours}}};

/// The layouts of a region that is hybrid, and of one that is not.
struct TwoLayouts {
  Stripes hybrid, homogeneous;
};

/// A permutation of the regions.
std::vector<std::uint32_t> drawn_order(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t region) { return mixed(mixed(seed) + region); };
  std::ranges::sort(order, {}, key);
  return order;
}

/// Takes what a region needs of each server of the second class, if it has room.
class Room {
 public:
  explicit Room(const Servers& servers)
      : servers_(servers), left_(servers.classes[1].capacity_bytes.value_or(UINT64_MAX)) {}
  bool take(const Stripes& stripes, std::uint64_t length) {
    const std::uint64_t needed = bytes_on_classes(servers_, stripes, length)[1];
    if (needed > left_) return false;
    left_ -= needed;
    return true;
  }

 private:
  const Servers& servers_;
  std::uint64_t left_;
};

PlacedWindows kept(const std::vector<Stripes>& stripes, std::size_t windows) {
  return {std::vector(windows, stripes), {}};
}

PlacedWindows drawn_regions(std::span<const std::vector<Region>> windows, const Servers& servers,
                            const std::vector<TwoLayouts>& layouts, std::uint64_t seed) {
  std::vector<Stripes> stripes(layouts.size());
  Room room(servers);
  for (const std::uint32_t region : drawn_order(layouts.size(), seed)) {
    const auto& [hybrid, homogeneous] = layouts[region];
    stripes[region] = room.take(hybrid, windows.front()[region].length) ? hybrid : homogeneous;
  }
  return kept(stripes, windows.size());
}

std::uint64_t largest_length(const Region& region) {
  std::uint64_t largest = 0;
  for (const RequestGroup& group : region.groups) largest = std::max(largest, group.length);
  return largest > 0 ? largest : region.length;
}

/// r / m: the stripes of Table 3, as paper_options has them.
Stripes homogeneous_stripes(std::uint64_t r, const Servers& servers) {
  const std::uint64_t m = servers.classes[0].count;
  return {(r + m - 1) / m, 0};
}

double table2_seconds(const Region& region, const Servers& servers, std::uint64_t h, std::uint64_t s) {
  double seconds = 0;
  for (const RequestGroup& group : region.groups)
    seconds += static_cast<double>(group.count) * table2_cost(servers, h, s, group.length, group.is_write).seconds();
  return seconds;
}

/// The share of a region's bytes that the SServers may hold if every region is to be hybrid alike.
double share_for_all(const std::vector<Region>& regions, const Servers& servers) {
  const auto& capacity = servers.classes[1].capacity_bytes;
  double bytes = 0;
  for (const Region& region : regions) bytes += static_cast<double>(region.length);
  if (!capacity || bytes == 0) return 1;
  return static_cast<double>(*capacity) * servers.classes[1].count / bytes;
}

/// Algorithm 1 for each region. Regions whose requests are all of one kind have the same pair whatever their number, so
/// it is searched once.
Result<std::vector<StripeChoice>> searched_stripes(const std::vector<Region>& regions, const Servers& servers) {
  const auto key_of = [](const Region& region) {
    const bool is_alike = region.groups.size() == 1;
    return is_alike ? std::pair(region.groups[0].length, region.groups[0].is_write)
                    : std::pair(std::uint64_t{0}, false);
  };
  std::map<std::pair<std::uint64_t, bool>, std::size_t> known;
  std::vector<Region> different;
  std::vector<std::size_t> place;
  for (const Region& region : regions) {
    const auto key = key_of(region);
    const auto [at, is_new] = known.try_emplace(key, different.size());
    const bool is_own = is_new || key.first == 0;
    place.push_back(is_own ? different.size() : at->second);
    if (is_own) different.push_back(region);
  }
  auto searched = paper_stripes(different, servers);
  if (!searched) return searched;
  std::vector<StripeChoice> choices;
  for (std::size_t n = 0; n < regions.size(); ++n) {
    StripeChoice& choice = choices.emplace_back((*searched)[place[n]]);
    if (key_of(regions[n]).first == 0) continue;
    choice.seconds *=
        static_cast<double>(regions[n].groups[0].count) / static_cast<double>(different[place[n]].groups[0].count);
  }
  return choices;
}

/// h is as small as the request allows for each s, so Table 2 is least for one of these pairs.
Stripes psa_stripes(const Region& region, const Servers& servers, double max_share) {
  const std::uint64_t m = servers.classes[0].count, n = servers.classes[1].count, r = largest_length(region);
  Stripes best, least;
  double best_s = 0, least_share = 2;
  for (std::uint64_t s = step_bytes; s == step_bytes || (m + n) * s < r; s += step_bytes) {
    const std::uint64_t rest = r > n * s ? r - n * s : 0;
    const std::uint64_t h = std::max((rest + m * step_bytes - 1) / (m * step_bytes) * step_bytes, s + step_bytes);
    const double share = static_cast<double>(n * s) / static_cast<double>(m * h + n * s);
    if (share < least_share) {
      least = {h, s};
      least_share = share;
    }
    const double seconds = table2_seconds(region, servers, h, s);
    if (share > max_share || (!best.empty() && seconds >= best_s)) continue;
    best = {h, s};
    best_s = seconds;
  }
  return best.empty() ? least : best;
}

Result<std::vector<TwoLayouts>> two_layouts(PlacementPolicy policy, const std::vector<Region>& regions,
                                            const Servers& servers) {
  std::vector<TwoLayouts> layouts;
  if (policy == PlacementPolicy::def) {
    layouts.assign(regions.size(), {{default_stripe_bytes, default_stripe_bytes}, {default_stripe_bytes, 0}});
    return layouts;
  }
  std::vector<StripeChoice> choices;
  if (policy == PlacementPolicy::padp) {
    auto chosen = searched_stripes(regions, servers);
    if (!chosen) return pass_on(chosen.error());
    choices = *std::move(chosen);
  }
  const double max_share = share_for_all(regions, servers);
  for (std::size_t n = 0; n < regions.size(); ++n) {
    const Stripes hybrid = choices.empty() ? psa_stripes(regions[n], servers, max_share) : choices[n].stripes;
    layouts.push_back({hybrid, homogeneous_stripes(largest_length(regions[n]), servers)});
  }
  return layouts;
}

Result<PlacedWindows> printed(std::span<const std::vector<Region>> windows, const Servers& servers) {
  PlacedWindows placed;
  std::vector<std::vector<bool>> is_hybrid;
  for (const std::vector<Region>& regions : windows) {
    const auto choices = searched_stripes(regions, servers);
    if (!choices) return pass_on(choices.error());
    const std::vector<RegionOptions> options = paper_options(regions, *choices, servers);
    const RegionSelection selection = paper_selection(options, servers);
    auto& stripes = placed.stripes.emplace_back();
    auto& hybrid = is_hybrid.emplace_back();
    for (std::size_t n = 0; n < regions.size(); ++n) {
      stripes.push_back(options[n].options[selection.option[n]].stripes);
      hybrid.push_back(selection.option[n] != 0);
    }
  }
  for (const PaperMoves& moves : paper_migration(is_hybrid)) {
    auto& order = placed.order.emplace_back(moves.out);
    order.insert(order.end(), moves.in.begin(), moves.in.end());
  }
  return placed;
}

std::vector<std::uint64_t> lengths_of(const std::vector<Region>& regions) {
  std::vector<std::uint64_t> lengths;
  for (const Region& region : regions) lengths.push_back(region.length);
  return lengths;
}

Result<PlacedWindows> migrated(std::span<const std::vector<RegionOptions>> options,
                               std::span<const std::uint64_t> lengths, const Servers& servers, Contention contention,
                               double copy_weight) {
  const auto plans = plan_migration(options, lengths, servers, contention, {}, {.copy_weight = copy_weight});
  if (!plans) return pass_on(plans.error());
  PlacedWindows placed;
  for (std::size_t window = 0; window < plans->size(); ++window) {
    const WindowPlan& plan = (*plans)[window];
    auto& stripes = placed.stripes.emplace_back();
    for (std::size_t n = 0; n < plan.option.size(); ++n)
      stripes.push_back(options[window][n].options[plan.option[n]].stripes);
    auto& order = placed.order.emplace_back();
    for (const MigrationStep& step : plan.steps) order.push_back(step.region);
  }
  return placed;
}

Result<PlacedWindows> ours(std::span<const std::vector<Region>> windows, const Servers& servers,
                           const PolicyOptions& told) {
  const std::vector<std::uint64_t> lengths = lengths_of(windows.front());
  if (told.is_meeting)
    return migrated(meeting_options(windows, servers), lengths, servers, Contention::together, told.copy_weight);
  const auto options = same_options(windows, servers);
  auto placed = migrated(options, lengths, servers, told.contention, told.copy_weight);
  if (!placed || told.requests.empty()) return placed;
  const Contention other = told.contention == Contention::spread ? Contention::together : Contention::spread;
  auto otherwise = migrated(options, lengths, servers, other, told.copy_weight);
  if (!otherwise) return otherwise;
  const std::array known{requests_at_moments(told.requests)};
  std::vector<WholeLayout> layouts{{{placed->stripes.front()}}, {{otherwise->stripes.front()}}};
  for (const Stripes& stripes : even_layouts(lengths, servers, usual_length(known)))
    layouts.push_back({{std::vector(lengths.size(), stripes)}});
  const auto trial = best_by_trial(layouts, lengths, servers, known);
  if (!trial && trial.error().kind == ErrorKind::infeasible) return placed;  // too long to simulate
  if (!trial) return pass_on(trial.error());
  if (trial->best == 0) return placed;
  if (trial->best == 1) return otherwise;
  return kept(layouts[trial->best].stripes.front(), windows.size());
}

}  // namespace

std::optional<PlacementPolicy> placement_policy_of(std::string_view name) {
  for (const auto& [known, policy] : policy_names)
    if (known == name) return policy;
  return std::nullopt;
}

Result<PlacedWindows> place_windows(PlacementPolicy policy, std::span<const std::vector<Region>> windows,
                                    const Servers& servers, const PolicyOptions& options) {
  if (windows.empty() || servers.classes.size() != 2 || servers.classes[0].count == 0)
    return fail(ErrorKind::usage, "{} windows, {} classes of servers: expected a window, and HServers and SServers",
                windows.size(), servers.classes.size());
  const bool is_dynamic = policy == PlacementPolicy::printed || policy == PlacementPolicy::ours;
  if (!is_dynamic) {
    const auto layouts = two_layouts(policy, windows.front(), servers);
    if (!layouts) return pass_on(layouts.error());
    return drawn_regions(windows, servers, *layouts, options.seed);
  }
  const auto planned = options.is_migrating ? windows : windows.first(1);
  auto placed = policy == PlacementPolicy::printed ? printed(planned, servers) : ours(planned, servers, options);
  if (placed && !options.is_migrating) return kept(placed->stripes.front(), windows.size());
  return placed;
}

}  // namespace iosig
