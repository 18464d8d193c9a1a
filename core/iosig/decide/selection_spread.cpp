// Regions that are all used at once: the busiest class of servers counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "iosig/decide/selection_parts.h"

namespace iosig {
namespace {

constexpr int price_rounds = 200;    ///< of multiplicative weights
constexpr int max_idle_rounds = 20;  ///< that close less than small_gain of the gap to the bound
constexpr double small_gain = 0.01;
constexpr double price_step = 0.3;            ///< in the exponent, at first
constexpr std::size_t max_moves = 400;        ///< single improvements at the end
constexpr double few_selections = 100'000;    ///< up to which all are costed
constexpr std::size_t max_tries = 5'000'000;  ///< of changes, single and in pairs
constexpr std::size_t batch_size = 16;        ///< of changes that are filtered together

/// The times of everything that a selection keeps busy: they add up over the regions.
std::vector<double> demands(const Load& load, const Concurrency& at_a_time) {
  std::vector<double> busy_s{load.client_s / at_a_time.nodes};
  for (const ClassLoad& each : load.classes) busy_s.insert(busy_s.end(), {each.mean_storage_s, each.mean_network_s});
  std::vector<double> demand = busy_s;
  demand.push_back(load.latency_s / at_a_time.active);
  for (std::size_t n = 0; at_a_time.is_few() && n < busy_s.size(); ++n)
    demand.push_back(at_a_time.with_last(busy_s[n], load.latency_s));
  return demand;
}

/// Minimizes the largest total demand.
class Balance {
 public:
  Balance(std::span<const RegionOptions> regions, const Servers& servers)
      : regions_(regions), servers_(servers), by_price_(regions, servers) {
    const Concurrency at_a_time = concurrency_of(servers, requests_of(regions));
    kind_of_.resize(regions.size());
    for (const std::vector<std::uint32_t>& alike : by_price_.kinds()) {
      for (const std::uint32_t region : alike) kind_of_[region] = demand_.size();
      demand_.emplace_back();
      for (const LayoutOption& option : regions[alike.front()].options)
        demand_.back().push_back(demands(option.load, at_a_time));
    }
    Load none;
    none.classes.resize(servers.classes.size());
    resources_ = demands(none, at_a_time).size();
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
    OptionCosts costs;
    for (int round = 0, idle = 0; round < price_rounds && idle < max_idle_rounds; ++round, ++idle) {
      double bound = 0;
      put_costs(prices, costs);
      const std::vector<std::uint32_t> chosen = by_price_.choose(costs, bound);
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

  void put_costs(const std::vector<double>& prices, OptionCosts& costs) const {
    costs.resize(demand_.size());
    for (std::size_t kind = 0; kind < demand_.size(); ++kind) {
      costs[kind].clear();
      for (const auto& option : demand_[kind])
        costs[kind].push_back(std::inner_product(option.begin(), option.end(), prices.begin(), 0.0));
    }
  }
  [[nodiscard]] std::vector<double> total_of(const std::vector<std::uint32_t>& chosen) const {
    std::vector<double> total(resources_);
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      const std::vector<double>& demand = demand_[kind_of_[n]][chosen[n]];
      for (std::size_t resource = 0; resource < resources_; ++resource) total[resource] += demand[resource];
    }
    return total;
  }

  /// A region's other option. Changes have numbers, in the order of regions and options.
  struct Change {
    std::size_t region = 0;
    std::uint32_t to = 0;
  };
  void list_changes(const std::vector<std::uint32_t>& at) {
    for (std::size_t n = 0; n < regions_.size(); ++n) {
      first_change_.push_back(changes_.size());
      for (std::uint32_t to = 0; to < regions_[n].options.size(); ++to) changes_.push_back({n, to});
    }
    const std::size_t batches = (changes_.size() + batch_size - 1) / batch_size;
    added_.assign(resources_, std::vector<double>(batches * batch_size, std::numeric_limits<double>::infinity()));
    added_bytes_.assign(servers_.classes.size(), std::vector<std::int64_t>(batches * batch_size));
    for (std::size_t n = 0; n < regions_.size(); ++n) put_added(n, at[n]);
  }
  /// Notes what each change of a region adds to the totals, now that it has option `from`.
  void put_added(std::size_t region, std::uint32_t from) {
    const std::vector<std::vector<double>>& demand = demand_[kind_of_[region]];
    for (std::size_t resource = 0; resource < resources_; ++resource)
      for (std::size_t to = 0; to < demand.size(); ++to)
        added_[resource][first_change_[region] + to] = demand[to][resource] - demand[from][resource];
    const std::vector<LayoutOption>& options = regions_[region].options;
    for (std::size_t number = 0; number < added_bytes_.size(); ++number)
      for (std::size_t to = 0; to < options.size(); ++to)
        added_bytes_[number][first_change_[region] + to] =
            static_cast<std::int64_t>(options[to].server_bytes[number] - options[from].server_bytes[number]);
  }
  void apply(const Change& change, RegionSelection& at, std::vector<double>& total, Rooms& rooms) {
    const std::uint32_t from = at.option[change.region];
    rooms.put(&regions_[change.region].options[from], regions_[change.region].options[change.to]);
    for (std::size_t n = 0; n < resources_; ++n) total[n] += added_[n][first_change_[change.region] + change.to];
    at.option[change.region] = change.to;
    put_added(change.region, change.to);
  }
  /// The largest total after a change.
  [[nodiscard]] double after(const std::vector<double>& total, std::size_t change) const {
    double most = 0;
    for (std::size_t n = 0; n < resources_; ++n) most = std::max(most, total[n] + added_[n][change]);
    return most;
  }

  /// Returns how many bytes more fit on a server of each class.
  [[nodiscard]] std::vector<std::int64_t> more_bytes(const Rooms& rooms) const {
    std::vector<std::int64_t> more;
    for (std::size_t number = 0; number < added_bytes_.size(); ++number)
      more.push_back(static_cast<std::int64_t>(rooms.more(number)));
    return more;
  }
  /// Rejects most changes cheaply: a change must relieve the two busiest resources and fit in the fullest class.
  struct Filter {
    const double *first, *second;
    const std::int64_t* bytes;
    double first_s, second_s;
    std::int64_t more;
    /// Without branches, for vector units.
    [[nodiscard]] std::int64_t passes(std::size_t change, double limit) const {
      return static_cast<std::int64_t>(first[change] < limit - first_s) &
             static_cast<std::int64_t>(second[change] < limit - second_s) &
             static_cast<std::int64_t>(bytes[change] <= more);
    }
  };
  [[nodiscard]] Filter filter_of(const std::vector<double>& total, const std::vector<std::int64_t>& more) const {
    std::vector<std::size_t> busiest(resources_);
    std::iota(busiest.begin(), busiest.end(), 0);
    std::ranges::partial_sort(busiest, busiest.begin() + 2, std::greater{}, [&](std::size_t n) { return total[n]; });
    const auto fullest = static_cast<std::size_t>(std::ranges::min_element(more) - more.begin());
    return {added_[busiest[0]].data(), added_[busiest[1]].data(), added_bytes_[fullest].data(),
            total[busiest[0]],         total[busiest[1]],         more[fullest]};
  }
  [[nodiscard]] bool fits(std::size_t change, const std::vector<std::int64_t>& more) const {
    for (std::size_t number = 0; number < more.size(); ++number)
      if (added_bytes_[number][change] > more[number]) return false;
    return true;
  }

  /// Returns the change after which the largest total is least, if that is below `limit`.
  [[nodiscard]] std::optional<Change> best_change(const RegionSelection& at, const std::vector<double>& total,
                                                  const Rooms& rooms, double& limit) const {
    const std::vector<std::int64_t> more = more_bytes(rooms);
    const Filter filter = filter_of(total, more);
    std::optional<Change> best;
    for (std::size_t batch = 0; batch < changes_.size(); batch += batch_size) {
      std::int64_t passed = 0;
      for (std::size_t n = batch; n < batch + batch_size; ++n) passed |= filter.passes(n, limit);
      for (std::size_t n = batch; passed != 0 && n < batch + batch_size; ++n) {
        if (filter.passes(n, limit) == 0) continue;
        const double most = after(total, n);
        if (!(most < limit * (1 - 1e-9)) || changes_[n].to == at.option[changes_[n].region] || !fits(n, more)) continue;
        limit = most;
        best = changes_[n];
      }
    }
    return best;
  }

  void improve(RegionSelection& at) {
    std::vector<double> total = total_of(at.option);
    Rooms rooms(servers_);
    for (std::size_t n = 0; n < regions_.size(); ++n) rooms.put(nullptr, regions_[n].options[at.option[n]]);
    list_changes(at.option);
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
  std::vector<std::size_t> kind_of_;                      ///< of each region
  std::vector<std::vector<std::vector<double>>> demand_;  ///< of each kind's options
  std::vector<Change> changes_;
  std::vector<std::size_t> first_change_;               ///< of each region
  std::vector<std::vector<double>> added_;              ///< to each resource by each change; whole batches
  std::vector<std::vector<std::int64_t>> added_bytes_;  ///< to a server of each class by each change
  std::size_t resources_ = 0, tries_ = 0;
};

}  // namespace

RegionSelection select_spread(std::span<const RegionOptions> regions, const Servers& servers) {
  return Balance(regions, servers).run();
}

}  // namespace iosig
