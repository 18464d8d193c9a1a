// The selection of least total cost, by benefit per space, over kinds of alike regions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "iosig/decide/selection_parts.h"

namespace iosig {
namespace {

/// All numbers of a region's options that a selection depends on.
std::vector<double> numbers_of(const RegionOptions& region) {
  std::vector<double> numbers;
  for (const LayoutOption& option : region.options) {
    numbers.insert(numbers.end(), {option.seconds, option.load.client_s, option.load.latency_s});
    for (const ClassLoad& each : option.load.classes)
      numbers.insert(numbers.end(), {each.mean_storage_s, each.mean_network_s});
    for (const std::uint64_t bytes : option.server_bytes)  // in halves, which are exact
      numbers.insert(numbers.end(), {static_cast<double>(bytes >> 32U), static_cast<double>(bytes & UINT32_MAX)});
  }
  return numbers;
}

double ratio_of(double benefit, double space) {
  return space > 0 ? benefit / space : std::numeric_limits<double>::infinity();
}

/// Returns the room for all regions: 1 fills the scarcest class.
double whole_room(const Servers& servers, std::uint32_t home) {
  std::size_t scarce = 0;
  for (std::size_t number = 0; number < servers.classes.size(); ++number)
    scarce += number != home && servers.classes[number].capacity_bytes && servers.classes[number].count > 0 ? 1 : 0;
  return scarce <= 1 ? 1 : static_cast<double>(servers.classes.size());
}

}  // namespace

std::vector<std::vector<std::uint32_t>> alike_regions(std::span<const RegionOptions> regions) {
  std::vector<std::vector<std::uint32_t>> kinds;
  std::map<std::vector<double>, std::size_t> known;
  for (std::uint32_t n = 0; n < regions.size(); ++n) {
    const auto [kind, is_new] = known.try_emplace(numbers_of(regions[n]), kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[kind->second].push_back(n);
  }
  return kinds;
}

ByPrice::ByPrice(std::span<const RegionOptions> regions, const Servers& servers)
    : regions_(regions), kinds_(alike_regions(regions)), rooms_(servers) {
  const std::uint32_t home = home_class(servers);
  room_ = whole_room(servers, home);
  for (const std::vector<std::uint32_t>& members : kinds_) {
    std::vector<double>& space = space_.emplace_back();
    for (const LayoutOption& option : regions[members.front()].options)
      space.push_back(space_of(option, servers, home));
    room_ -= space.front() * static_cast<double>(members.size());
  }
  for (const RegionOptions& region : regions) rooms_.put(nullptr, region.options[0]);
}

std::vector<std::uint32_t> ByPrice::choose(const OptionCosts& costs, double& bound) const {
  std::vector<std::uint32_t> chosen(regions_.size());
  std::vector<Increment> steps;
  bound = 0;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    bound += costs[kind][0] * static_cast<double>(kinds_[kind].size());
    add_steps(kind, costs[kind], steps);
  }
  std::ranges::stable_sort(steps, std::greater{}, &Increment::per_space);
  Rooms rooms(rooms_);
  double room = room_;
  for (const Increment& step : steps) {
    if (room > 0) {
      const auto count = static_cast<double>(kinds_[step.kind].size());
      const double space = step.space * count;
      bound -= step.benefit * count * (space > room ? room / space : 1);
      room -= space;
    }
    take(step, chosen, rooms);
  }
  return chosen;
}

void ByPrice::take(const Increment& step, std::vector<std::uint32_t>& chosen, Rooms& rooms) const {
  const std::vector<LayoutOption>& options = regions_[kinds_[step.kind].front()].options;
  for (const std::uint32_t region : kinds_[step.kind]) {
    if (chosen[region] != step.from) continue;
    if (!rooms.fits(&options[step.from], options[step.to])) return;  // nor do the others
    rooms.put(&options[step.from], options[step.to]);
    chosen[region] = step.to;
  }
}

void ByPrice::add_steps(std::size_t kind, const std::vector<double>& costs, std::vector<Increment>& steps) const {
  std::uint32_t at = 0;
  const std::vector<double>& space = space_[kind];
  for (;;) {
    std::optional<Increment> best;
    for (std::uint32_t to = 0; to < costs.size(); ++to) {
      const double benefit = costs[at] - costs[to], more = std::max(0.0, space[to] - space[at]);
      if (!(benefit > 0) || !std::isfinite(more)) continue;
      const double per_space = ratio_of(benefit, more);
      const bool is_better =
          !best || per_space > best->per_space || (per_space == best->per_space && benefit > best->benefit);
      if (is_better)
        best = Increment{.kind = kind, .from = at, .to = to, .benefit = benefit, .space = more, .per_space = per_space};
    }
    if (!best) return;
    at = best->to;
    steps.push_back(*best);
  }
}

}  // namespace iosig
