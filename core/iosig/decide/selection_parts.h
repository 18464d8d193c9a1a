// Parts of select_regions: the room on servers, and the selection of least total cost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "iosig/base/units.h"
#include "iosig/decide/selection.h"

namespace iosig {

/// The bytes used on a server of each class, and whether more would fit.
class Rooms {
 public:
  explicit Rooms(const Servers& servers) : used_(servers.classes.size()) {
    for (const ServerClass& each : servers.classes) room_.push_back(each.capacity_bytes.value_or(max_bytes));
  }
  /// Returns whether `to` fits after `from` (if any) has gone.
  [[nodiscard]] bool fits(const LayoutOption* from, const LayoutOption& to) const {
    for (std::size_t number = 0; number < room_.size(); ++number) {
      const std::uint64_t rest = used_[number] - (from != nullptr ? from->server_bytes[number] : 0);
      // What was too full before may stay as full.
      if (to.server_bytes[number] > 0 && (rest > room_[number] || to.server_bytes[number] > room_[number] - rest) &&
          rest + to.server_bytes[number] > used_[number])
        return false;
    }
    return true;
  }
  void put(const LayoutOption* from, const LayoutOption& to) {
    for (std::size_t number = 0; number < room_.size(); ++number)
      used_[number] += to.server_bytes[number] - (from != nullptr ? from->server_bytes[number] : 0);
  }
  /// Returns the class that is too full.
  [[nodiscard]] std::optional<std::size_t> overfull() const {
    for (std::size_t number = 0; number < room_.size(); ++number)
      if (used_[number] > room_[number]) return number;
    return std::nullopt;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& used() const { return used_; }

 private:
  std::vector<std::uint64_t> used_, room_;
};

/// Returns the space that an option takes, as a share of the scarcest class's: 1 fills it. The home class does not
/// count.
[[nodiscard]] inline double space_of(const LayoutOption& option, const Servers& servers, std::uint32_t home) {
  double space = 0;
  for (std::size_t number = 0; number < servers.classes.size(); ++number) {
    const auto& capacity = servers.classes[number].capacity_bytes;
    if (number == home || !capacity || option.server_bytes[number] == 0) continue;
    if (*capacity == 0) return std::numeric_limits<double>::infinity();
    space = std::max(space, static_cast<double>(option.server_bytes[number]) / static_cast<double>(*capacity));
  }
  return space;
}

/// A better option of a region for more space, on the convex hull of its options.
struct Increment {
  std::size_t region = 0;
  std::uint32_t from = 0, to = 0;
  double benefit = 0, space = 0;
  [[nodiscard]] double per_space() const {
    return space > 0 ? benefit / space : std::numeric_limits<double>::infinity();
  }
};

/// The costs of all options, additive over the regions.
using OptionCosts = std::vector<std::vector<double>>;

class ByPrice {
 public:
  ByPrice(std::span<const RegionOptions> regions, const Servers& servers) : regions_(regions), servers_(servers) {
    const std::uint32_t home = home_class(servers);
    std::size_t scarce = 0;
    for (std::size_t number = 0; number < servers.classes.size(); ++number)
      scarce += number != home && servers.classes[number].capacity_bytes && servers.classes[number].count > 0 ? 1 : 0;
    is_one_class_scarce_ = scarce <= 1;
    for (const RegionOptions& region : regions) {
      space_.emplace_back();
      for (const LayoutOption& option : region.options) space_.back().push_back(space_of(option, servers, home));
    }
  }

  /// Returns options of least total cost; `bound` becomes a cost that no selection is below.
  [[nodiscard]] std::vector<std::uint32_t> choose(const OptionCosts& costs, double& bound) const {
    std::vector<std::uint32_t> chosen(regions_.size());
    std::vector<Increment> steps;
    bound = 0;
    for (std::size_t n = 0; n < regions_.size(); ++n) {
      bound += costs[n][0];
      add_steps(n, costs[n], steps);
    }
    std::ranges::stable_sort(steps, std::greater{}, &Increment::per_space);
    Rooms rooms(servers_);
    for (const RegionOptions& region : regions_) rooms.put(nullptr, region.options[0]);
    double room = is_one_class_scarce_ ? 1 : static_cast<double>(servers_.classes.size());
    for (std::size_t n = 0; n < regions_.size(); ++n) room -= space_[n][0];
    for (const Increment& step : steps) {
      if (room > 0) {
        bound -= step.benefit * (step.space > room ? room / step.space : 1);
        room -= step.space;
      }
      const LayoutOption& from = regions_[step.region].options[chosen[step.region]];
      const LayoutOption& to = regions_[step.region].options[step.to];
      if (chosen[step.region] != step.from || !rooms.fits(&from, to)) continue;
      rooms.put(&from, to);
      chosen[step.region] = step.to;
    }
    return chosen;
  }

 private:
  /// Adds the increments of one region, from the option without benefit or space on.
  void add_steps(std::size_t region, const std::vector<double>& costs, std::vector<Increment>& steps) const {
    std::uint32_t at = 0;
    const std::vector<double>& space = space_[region];
    for (;;) {
      std::optional<Increment> best;
      for (std::uint32_t to = 0; to < costs.size(); ++to) {
        const Increment step{.region = region,
                             .from = at,
                             .to = to,
                             .benefit = costs[at] - costs[to],
                             .space = std::max(0.0, space[to] - space[at])};
        if (!(step.benefit > 0) || !std::isfinite(step.space)) continue;
        const bool is_better = !best || step.per_space() > best->per_space() ||
                               (step.per_space() == best->per_space() && step.benefit > best->benefit);
        if (is_better) best = step;
      }
      if (!best) return;
      at = best->to;
      steps.push_back(*best);
    }
  }

  std::span<const RegionOptions> regions_;
  const Servers& servers_;
  std::vector<std::vector<double>> space_;
  bool is_one_class_scarce_ = true;
};

/// Selects the options after which the busiest server over all regions is least busy.
[[nodiscard]] RegionSelection select_spread(std::span<const RegionOptions> regions, const Servers& servers);

}  // namespace iosig
