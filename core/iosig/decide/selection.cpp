#include "iosig/decide/selection.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "iosig/base/units.h"
#include "iosig/decide/selection_parts.h"

namespace iosig {
namespace {

double sum_of_seconds(std::span<const RegionOptions> regions, const std::vector<std::uint32_t>& chosen) {
  double sum = 0;
  for (std::size_t n = 0; n < regions.size(); ++n) sum += regions[n].options[chosen[n]].seconds;
  return sum;
}

/// Each region's option with least time, or option 0, by a knapsack over the one scarce class; nothing if several are.
std::optional<std::vector<std::uint32_t>> by_knapsack(std::span<const RegionOptions> regions, const Servers& servers) {
  const std::uint32_t home = home_class(servers);
  std::optional<std::size_t> scarce;
  for (std::size_t number = 0; number < servers.classes.size(); ++number) {
    if (number == home || !servers.classes[number].capacity_bytes || servers.classes[number].count == 0) continue;
    if (scarce) return std::nullopt;
    scarce = number;
  }
  if (!scarce) return std::nullopt;
  std::uint64_t room = *servers.classes[*scarce].capacity_bytes;
  std::vector<KnapsackItem> items;
  std::vector<std::uint32_t> best;
  for (const RegionOptions& region : regions) {
    std::uint32_t fastest = 0;
    for (std::uint32_t n = 1; n < region.options.size(); ++n)
      if (region.options[n].seconds < region.options[fastest].seconds) fastest = n;
    best.push_back(fastest);
    const std::uint64_t base = region.options[0].server_bytes[*scarce];
    room -= std::min(room, base);
    const std::uint64_t bytes = region.options[fastest].server_bytes[*scarce];
    items.push_back({region.options[0].seconds - region.options[fastest].seconds, bytes - std::min(bytes, base)});
  }
  const std::vector<bool> taken = knapsack(items, room);
  for (std::size_t n = 0; n < best.size(); ++n)
    if (!taken[n]) best[n] = 0;
  return best;
}

RegionSelection select_together(std::span<const RegionOptions> regions, const Servers& servers) {
  const ByPrice by_price(regions, servers);
  OptionCosts costs;
  for (const std::vector<std::uint32_t>& alike : by_price.kinds()) {
    costs.emplace_back();
    for (const LayoutOption& option : regions[alike.front()].options) costs.back().push_back(option.seconds);
  }
  RegionSelection selection;
  selection.option = by_price.choose(costs, selection.bound_s);
  selection.seconds = sum_of_seconds(regions, selection.option);
  if (auto other = by_knapsack(regions, servers)) {
    Rooms rooms(servers);
    for (std::size_t n = 0; n < regions.size(); ++n) rooms.put(nullptr, regions[n].options[(*other)[n]]);
    const double seconds = sum_of_seconds(regions, *other);
    if (!rooms.overfull() && seconds < selection.seconds) {
      selection.option = std::move(*other);
      selection.seconds = seconds;
    }
  }
  return selection;
}

std::vector<std::uint64_t> used_bytes(std::span<const RegionOptions> regions, const Servers& servers,
                                      const std::vector<std::uint32_t>& chosen) {
  Rooms rooms(servers);
  for (std::size_t n = 0; n < regions.size(); ++n) rooms.put(nullptr, regions[n].options[chosen[n]]);
  return rooms.used();
}

}  // namespace

RegionSelection paper_selection(std::span<const RegionOptions> regions, const Servers& servers) {
  std::vector<std::size_t> order(regions.size());
  std::iota(order.begin(), order.end(), 0);
  const auto benefit = [&](std::size_t n) { return regions[n].options[0].seconds - regions[n].options[1].seconds; };
  std::ranges::stable_sort(order, std::greater{}, benefit);
  const std::optional<std::uint64_t>& capacity = servers.classes[1].capacity_bytes;
  std::uint64_t free = capacity.value_or(max_bytes);
  RegionSelection selection;
  selection.option.resize(regions.size());
  for (const std::size_t n : order) {
    const std::uint64_t bytes = regions[n].options[1].server_bytes[1];
    if (!(benefit(n) > 0) || bytes > free) continue;
    free -= bytes;
    selection.option[n] = 1;
  }
  selection.seconds = sum_of_seconds(regions, selection.option);
  selection.server_bytes = used_bytes(regions, servers, selection.option);
  return selection;
}

Result<RegionSelection> select_regions(std::span<const RegionOptions> regions, const Servers& servers,
                                       Contention contention) {
  Rooms rooms(servers);
  for (const RegionOptions& region : regions) rooms.put(nullptr, region.options[0]);
  if (const auto full = rooms.overfull())
    return fail(ErrorKind::infeasible,
                "server class '{}': all regions need {} on each server, which has {}: plan fewer "
                "files, or add servers",
                servers.classes[*full].name, about_bytes(static_cast<double>(rooms.used()[*full])),
                about_bytes(static_cast<double>(*servers.classes[*full].capacity_bytes)));
  RegionSelection selection =
      contention == Contention::together ? select_together(regions, servers) : select_spread(regions, servers);
  if (contention == Contention::spread && !are_even(regions)) {
    RegionSelection together = select_together(regions, servers);
    together.bound_s = 0;  // of another sum
    selection = balanced_servers(regions, servers, std::array{std::move(selection), std::move(together)});
  }
  selection.server_bytes = used_bytes(regions, servers, selection.option);
  return selection;
}

}  // namespace iosig
