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
      // A server that was already too full may stay as full as it was.
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
  /// Returns how many bytes more a server of class `number` has room for.
  [[nodiscard]] std::uint64_t more(std::size_t number) const {
    return room_[number] - std::min(used_[number], room_[number]);
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

/// Numbers of regions whose options agree in loads, seconds and bytes; each set in ascending order, and the sets by
/// their first regions.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> alike_regions(std::span<const RegionOptions> regions);

/// A better option of alike regions for more space, on the convex hull of their options.
struct Increment {
  std::size_t kind = 0;
  std::uint32_t from = 0, to = 0;
  double benefit = 0, space = 0;  ///< of one region
  double per_space = 0;
};

/// The costs of all options, additive over the regions: for each kind of ByPrice, those of one region.
using OptionCosts = std::vector<std::vector<double>>;

/// Selects by benefit per space.
class ByPrice {
 public:
  ByPrice(std::span<const RegionOptions> regions, const Servers& servers);

  /// Returns the sets of alike_regions.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& kinds() const { return kinds_; }
  /// Returns options of least total cost; `bound` becomes a cost that no selection is below.
  [[nodiscard]] std::vector<std::uint32_t> choose(const OptionCosts& costs, double& bound) const;

 private:
  /// Adds the increments of one kind, from the option without benefit or space on.
  void add_steps(std::size_t kind, const std::vector<double>& costs, std::vector<Increment>& steps) const;
  /// Takes a step for as many of its kind as there is room for.
  void take(const Increment& step, std::vector<std::uint32_t>& chosen, Rooms& rooms) const;

  std::span<const RegionOptions> regions_;
  std::vector<std::vector<std::uint32_t>> kinds_;
  std::vector<std::vector<double>> space_;  ///< of each kind's options
  Rooms rooms_;                             ///< with option 0 of all regions
  double room_ = 1;                         ///< beside them, in shares of the scarcest class
};

/// Returns the number of requests of all regions.
[[nodiscard]] double requests_of(std::span<const RegionOptions> regions);

/// Selects the options after which the busiest class over all regions is least busy, as if each region loaded the
/// servers of a class evenly.
[[nodiscard]] RegionSelection select_spread(std::span<const RegionOptions> regions, const Servers& servers);

/// Whether each option of each region loads the servers of a class evenly.
[[nodiscard]] bool are_even(std::span<const RegionOptions> regions);

/// Selects the options after which the busiest server over all regions is least busy: the best of all where they are
/// few, otherwise the best near `starts`, of which one must have a bound_s.
[[nodiscard]] RegionSelection balanced_servers(std::span<const RegionOptions> regions, const Servers& servers,
                                               std::span<const RegionSelection> starts);

}  // namespace iosig
