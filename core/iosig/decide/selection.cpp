#include "iosig/decide/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "iosig/base/units.h"

namespace iosig {
namespace {

constexpr int price_rounds = 200;    ///< of multiplicative weights
constexpr int max_idle_rounds = 20;  ///< that close less than small_gain of the gap to the bound
constexpr double small_gain = 0.01;
constexpr double price_step = 0.3;            ///< in the exponent, at first
constexpr std::size_t max_moves = 400;        ///< single improvements at the end
constexpr double few_selections = 100'000;    ///< up to which all are costed
constexpr std::size_t max_tries = 5'000'000;  ///< of changes, single and in pairs

/// Bytes used on a server of each class, and whether more would fit.
class Rooms {
 public:
  explicit Rooms(const Servers& servers) : used_(servers.classes.size()) {
    for (const ServerClass& each : servers.classes) room_.push_back(each.capacity_bytes.value_or(max_bytes));
  }
  /// Whether `to` fits after `from` (if any) has gone.
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

/// Space that an option takes, as a share of the scarcest class's: 1 fills it. The home class does not count.
double space_of(const LayoutOption& option, const Servers& servers, std::uint32_t home) {
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

/// Busy times of everything that a selection keeps busy.
std::vector<double> demands(const Load& load, const Servers& servers) {
  std::vector<double> demand{load.client_s, load.latency_s / servers.processes};
  for (const ClassLoad& each : load.classes) {
    demand.push_back(each.mean_storage_s);
    demand.push_back(each.mean_network_s);
  }
  return demand;
}

/// Minimizes the largest total demand.
class Balance {
 public:
  Balance(std::span<const RegionOptions> regions, const Servers& servers)
      : regions_(regions), servers_(servers), by_price_(regions, servers) {
    for (const RegionOptions& region : regions) {
      demand_.emplace_back();
      for (const LayoutOption& option : region.options) demand_.back().push_back(demands(option.load, servers));
    }
    resources_ = 2 + 2 * servers.classes.size();
  }

  [[nodiscard]] RegionSelection run() {
    double selections = 1;
    for (const RegionOptions& region : regions_) selections *= static_cast<double>(region.options.size());
    return selections <= few_selections ? best_of_all() : by_prices();
  }

 private:
  /// Costs every selection, in ascending order of the options.
  [[nodiscard]] RegionSelection best_of_all() const {
    RegionSelection best, at;
    at.option.resize(regions_.size());
    best.seconds = std::numeric_limits<double>::infinity();
    for (;;) {
      Rooms rooms(servers_);
      for (std::size_t n = 0; n < regions_.size(); ++n) rooms.put(nullptr, regions_[n].options[at.option[n]]);
      const std::vector<double> total = total_of(at.option);
      at.seconds = *std::ranges::max_element(total);
      if (at.seconds < best.seconds && !rooms.overfull()) best = at;
      std::size_t n = regions_.size();
      while (n > 0 && at.option[n - 1] + 1 == regions_[n - 1].options.size()) at.option[--n] = 0;
      if (n == 0) break;
      ++at.option[n - 1];
    }
    best.bound_s = best.seconds;
    return best;
  }

  [[nodiscard]] RegionSelection by_prices() {
    std::vector<double> prices(resources_, 1.0 / static_cast<double>(resources_));
    RegionSelection best;
    best.seconds = std::numeric_limits<double>::infinity();
    double gap = best.seconds;
    for (int round = 0, idle = 0; round < price_rounds && idle < max_idle_rounds; ++round, ++idle) {
      double bound = 0;
      const std::vector<std::uint32_t> chosen = by_price_.choose(costs_at(prices), bound);
      const std::vector<double> total = total_of(chosen);
      const double most = *std::ranges::max_element(total);
      best.bound_s = std::max(best.bound_s, bound);
      if (most < best.seconds) {
        best.seconds = most;
        best.option = chosen;
      }
      if (best.seconds - best.bound_s < gap * (1 - small_gain)) {
        gap = best.seconds - best.bound_s;
        idle = 0;
      }
      if (gap <= best.seconds * 1e-6) break;
      double sum = 0;
      for (std::size_t n = 0; n < resources_; ++n) {
        prices[n] *= std::exp(price_step / (1 + 0.05 * round) * (total[n] / most - 1));
        sum += prices[n];
      }
      for (double& price : prices) price /= sum;
    }
    improve(best);
    return best;
  }

  [[nodiscard]] OptionCosts costs_at(const std::vector<double>& prices) const {
    OptionCosts costs;
    for (const auto& region : demand_) {
      costs.emplace_back();
      for (const auto& option : region)
        costs.back().push_back(std::inner_product(option.begin(), option.end(), prices.begin(), 0.0));
    }
    return costs;
  }
  [[nodiscard]] std::vector<double> total_of(const std::vector<std::uint32_t>& chosen) const {
    std::vector<double> total(resources_);
    for (std::size_t n = 0; n < chosen.size(); ++n)
      for (std::size_t resource = 0; resource < resources_; ++resource)
        total[resource] += demand_[n][chosen[n]][resource];
    return total;
  }

  /// The largest total after a region's change.
  [[nodiscard]] double after(const std::vector<double>& total, std::size_t region, std::uint32_t from,
                             std::uint32_t to) const {
    double most = 0;
    for (std::size_t n = 0; n < resources_; ++n)
      most = std::max(most, total[n] + demand_[region][to][n] - demand_[region][from][n]);
    return most;
  }

  struct Change {
    std::size_t region = 0;
    std::uint32_t to = 0;
  };
  void apply(const Change& change, RegionSelection& at, std::vector<double>& total, Rooms& rooms) const {
    const std::uint32_t from = at.option[change.region];
    rooms.put(&regions_[change.region].options[from], regions_[change.region].options[change.to]);
    for (std::size_t n = 0; n < resources_; ++n)
      total[n] += demand_[change.region][change.to][n] - demand_[change.region][from][n];
    at.option[change.region] = change.to;
  }

  /// Returns the change after which the largest total is least, if that is below `limit`.
  [[nodiscard]] std::optional<Change> best_change(const RegionSelection& at, const std::vector<double>& total,
                                                  const Rooms& rooms, double& limit) const {
    std::optional<Change> best;
    for (std::size_t n = 0; n < regions_.size(); ++n)
      for (std::uint32_t to = 0; to < regions_[n].options.size(); ++to) {
        const std::uint32_t from = at.option[n];
        if (to == from) continue;
        const double most = after(total, n, from, to);
        if (!(most < limit * (1 - 1e-9)) || !rooms.fits(&regions_[n].options[from], regions_[n].options[to])) continue;
        limit = most;
        best = Change{n, to};
      }
    return best;
  }

  void improve(RegionSelection& at) {
    std::vector<double> total = total_of(at.option);
    Rooms rooms(servers_);
    for (std::size_t n = 0; n < regions_.size(); ++n) rooms.put(nullptr, regions_[n].options[at.option[n]]);
    for (std::size_t moves = 0; moves < max_moves && at.seconds > at.bound_s * (1 + 1e-4); ++moves) {
      double limit = at.seconds;
      if (const auto change = best_change(at, total, rooms, limit)) {
        apply(*change, at, total, rooms);
      } else if (!improve_by_pair(at, total, rooms)) {
        break;
      }
      at.seconds = *std::ranges::max_element(total);
    }
  }

  /// Tries each change together with the best one after it. Returns whether a pair helped.
  [[nodiscard]] bool improve_by_pair(RegionSelection& at, std::vector<double>& total, Rooms& rooms) {
    const double before = *std::ranges::max_element(total);
    for (std::size_t n = 0; n < regions_.size(); ++n)
      for (std::uint32_t to = 0; to < regions_[n].options.size(); ++to) {
        const std::uint32_t from = at.option[n];
        if (to == from || !rooms.fits(&regions_[n].options[from], regions_[n].options[to])) continue;
        tries_ += regions_.size();
        if (tries_ > max_tries) return false;
        apply({n, to}, at, total, rooms);
        double limit = before;
        if (const auto next = best_change(at, total, rooms, limit)) {
          apply(*next, at, total, rooms);
          return true;
        }
        apply({n, from}, at, total, rooms);
      }
    return false;
  }

  std::span<const RegionOptions> regions_;
  const Servers& servers_;
  ByPrice by_price_;
  std::vector<std::vector<std::vector<double>>> demand_;
  std::size_t resources_ = 0, tries_ = 0;
};

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
  OptionCosts costs;
  for (const RegionOptions& region : regions) {
    costs.emplace_back();
    for (const LayoutOption& option : region.options) costs.back().push_back(option.seconds);
  }
  RegionSelection selection;
  selection.option = ByPrice(regions, servers).choose(costs, selection.bound_s);
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
      contention == Contention::together ? select_together(regions, servers) : Balance(regions, servers).run();
  selection.server_bytes = used_bytes(regions, servers, selection.option);
  return selection;
}

}  // namespace iosig
