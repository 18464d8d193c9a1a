// The layouts among which a region's is selected: H2DP's and ours.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "iosig/base/parallel.h"
#include "iosig/base/units.h"
#include "iosig/decide/regions.h"
#include "iosig/decide/selection.h"

namespace iosig {
namespace {

constexpr std::uint64_t total_effort = 4'000'000;  ///< requests that all searches together may cost
constexpr std::uint64_t least_effort = 2'000;
constexpr std::size_t many_shapes = 200;  ///< from here on, loads are sampled more coarsely
constexpr std::uint64_t coarse_phases = 128;
constexpr std::size_t max_server_loads = std::size_t{1} << 20U;  ///< of an option of each region: some 100 MB in all
constexpr double share_steps = 32;                               ///< in which the proportions of counts are alike

/// The input of a stripe search: regions of equal shape have the same best stripes.
using GroupShape = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool, double, double>;
using RegionShape = std::pair<std::uint64_t, std::vector<GroupShape>>;

/// Steps of a quarter: chance decides where the first and the last of many requests begin.
double rough(std::uint64_t places) { return std::ceil(4 * std::log2(static_cast<double>(places))); }

RegionShape shape_of(const Region& region) {
  std::uint64_t most = 0;
  for (const RequestGroup& group : region.groups) most = std::max(most, group.count);
  const auto reaches_far = [&](const RequestGroup& group) {
    return group.is_scattered() &&
           (region.groups.size() == 1 || group.places >= region.length / 2 / std::max<std::uint64_t>(1, group.stride));
  };
  RegionShape shape{region.length, {}};
  for (const RequestGroup& group : region.groups) {
    if (group.length == 0 || group.count == 0) continue;
    const double share = std::ceil(share_steps * static_cast<double>(group.count) / static_cast<double>(most));
    // Few requests in order hit certain servers; of many scattered ones only the proportions count, and how far they
    // reach. Where a single hot part lies decides only which servers are busy.
    const bool is_many = group.is_scattered();
    const std::uint64_t stride = std::max<std::uint64_t>(1, group.stride);
    const std::uint64_t offset = reaches_far(group) ? group.offset % stride : group.offset;
    shape.second.emplace_back(group.length, group.stride, offset, group.is_write, is_many ? rough(group.places) : -1.0,
                              is_many ? share : static_cast<double>(group.count));
  }
  std::ranges::sort(shape.second);
  return shape;
}

LayoutOption option_of(const Region& region, const Servers& servers, Stripes stripes,
                       std::uint64_t max_phases = default_max_phases) {
  LayoutOption option;
  option.load = load_of(servers, stripes, region.groups, max_phases);
  option.server_bytes = bytes_on_classes(servers, stripes, region.length);
  option.seconds = busiest_s(servers, option.load);
  option.stripes = std::move(stripes);
  return option;
}

/// Returns the sets of classes of our options: each alone, the home class first, then all.
std::vector<std::vector<bool>> option_classes(const Servers& servers) {
  std::vector<std::vector<bool>> sets;
  const std::uint32_t home = home_class(servers);
  std::vector<bool> all(servers.classes.size());
  const auto add_alone = [&](std::size_t number) {
    if (servers.classes[number].count == 0) return;
    sets.emplace_back(servers.classes.size())[number] = true;
    all[number] = true;
  };
  add_alone(home);
  for (std::size_t number = 0; number < servers.classes.size(); ++number)
    if (number != home) add_alone(number);
  if (sets.size() > 1) sets.push_back(all);
  return sets;
}

}  // namespace

std::uint32_t home_class(const Servers& servers) {
  std::uint32_t best = 0;
  double best_bytes = -1;
  for (std::uint32_t number = 0; number < servers.classes.size(); ++number) {
    const ServerClass& each = servers.classes[number];
    if (each.count == 0) continue;
    const double bytes = each.capacity_bytes ? each.count * static_cast<double>(*each.capacity_bytes)
                                             : std::numeric_limits<double>::infinity();
    if (bytes <= best_bytes) continue;
    best = number;
    best_bytes = bytes;
  }
  return best;
}

bool keeps_server_loads(std::size_t regions, const Servers& servers) {
  return regions * server_count(servers) <= max_server_loads;
}

std::vector<RegionOptions> paper_options(std::span<const Region> regions, std::span<const StripeChoice> stripes,
                                         const Servers& servers) {
  std::vector<RegionOptions> all;
  for (std::size_t n = 0; n < regions.size(); ++n) {
    std::uint64_t r = regions[n].groups.empty() ? MiB : 1;
    double slow_s = 0;
    for (const RequestGroup& group : regions[n].groups) {
      r = std::max(r, group.length);
      if (group.length > 0)
        slow_s += static_cast<double>(group.count) * table3_cost(servers, group.length, group.is_write).seconds();
    }
    const std::uint64_t m = servers.classes[0].count;
    RegionOptions& options = all.emplace_back();
    options.options.push_back(option_of(regions[n], servers, {(r + m - 1) / m, 0}));
    options.options.back().seconds = slow_s;
    options.options.push_back(option_of(regions[n], servers, stripes[n].stripes));
    options.options.back().seconds = stripes[n].seconds;
  }
  return all;
}

std::vector<RegionOptions> layout_options(std::span<const Region> regions, const Servers& servers,
                                          const StripeOptions& options, unsigned threads) {
  std::vector<RegionShape> shapes(regions.size());
  for_each_in_parallel(regions.size(), threads, [&](std::size_t n) { shapes[n] = shape_of(regions[n]); });
  std::map<RegionShape, std::size_t> number_of;
  std::vector<std::size_t> shape_number, first_region;
  for (std::size_t n = 0; n < regions.size(); ++n) {
    const auto [at, is_new] = number_of.emplace(std::move(shapes[n]), first_region.size());
    if (is_new) first_region.push_back(n);
    shape_number.push_back(at->second);
  }
  const std::vector<std::vector<bool>> sets = option_classes(servers);
  StripeOptions each = options;
  each.max_effort = std::min<std::uint64_t>(
      options.max_effort,
      std::max(least_effort, total_effort / std::max<std::uint64_t>(1, first_region.size() * sets.size())));
  std::vector<std::vector<StripeChoice>> found(first_region.size() * sets.size());
  for_each_in_parallel(found.size(), threads, [&](std::size_t n) {
    const Region& region = regions[first_region[n / sets.size()]];
    StripeOptions limited = each;
    limited.max_period_bytes = std::min(each.max_period_bytes, std::max<std::uint64_t>(1, region.length));
    found[n] = choose_shared_stripes(region.groups, servers, limited, sets[n % sets.size()]);
  });
  const std::uint64_t phases = first_region.size() > many_shapes ? coarse_phases : default_max_phases;
  std::vector<RegionOptions> all(regions.size());
  const bool keeps_servers = keeps_server_loads(regions.size(), servers);
  const std::vector<std::size_t> first = first_equal_regions(regions);
  for_each_in_parallel(regions.size(), threads, [&](std::size_t n) {
    if (first[n] != n) return;
    std::vector<Stripes> known;
    for (std::size_t set = 0; set < sets.size(); ++set)
      for (const auto& [stripes, seconds, is_fallback, tried] : found[shape_number[n] * sets.size() + set]) {
        if (stripes.empty() || std::ranges::find(known, stripes) != known.end()) continue;
        known.push_back(stripes);
        all[n].options.push_back(option_of(regions[n], servers, stripes, phases));
        if (!keeps_servers) all[n].options.back().load.servers.clear();
      }
  });
  for (std::size_t n = 0; n < regions.size(); ++n)
    if (first[n] != n) all[n] = all[first[n]];
  return all;
}

}  // namespace iosig
