// Improves a selection where regions load the servers of a class unevenly: few requests, or hot spots.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "iosig/decide/selection_parts.h"

namespace iosig {
namespace {

constexpr double few_sums = 5e7;  ///< up to which all selections are added up
constexpr double max_sums = 1e9;  ///< of the search
constexpr int max_sweeps = 40;
constexpr std::array powers{3, 5};  ///< of two: the exponents of the potential, one after the other

/// Minimizes the time of the busiest server or client.
class ServerBalance {
 public:
  ServerBalance(std::span<const RegionOptions> regions, const Servers& servers)
      : regions_(regions), servers_(servers), at_a_time_(concurrency_of(servers, requests_of(regions))) {
    resources_ = 2 * std::size_t{server_count(servers)} + 2;
  }

  [[nodiscard]] bool may_cost_all() const {
    double sums = static_cast<double>(resources_ * regions_.size());
    for (const RegionOptions& region : regions_) sums *= static_cast<double>(region.options.size());
    return sums <= few_sums;
  }

  /// Costs every selection, in ascending order of the options.
  [[nodiscard]] RegionSelection best_of_all() const {
    RegionSelection best;
    best.seconds = std::numeric_limits<double>::infinity();
    std::vector<std::uint32_t> at(regions_.size());
    for (;;) {
      Rooms rooms(servers_);
      for (std::size_t n = 0; n < regions_.size(); ++n) rooms.put(nullptr, regions_[n].options[at[n]]);
      const double seconds = rooms.overfull() ? best.seconds : seconds_of(at);
      if (seconds < best.seconds) {
        best.seconds = seconds;
        best.option = at;
      }
      std::size_t n = regions_.size();
      while (n > 0 && at[n - 1] + 1 == regions_[n - 1].options.size()) at[--n] = 0;
      if (n == 0) break;
      ++at[n - 1];
    }
    best.bound_s = best.seconds;
    return best;
  }

  [[nodiscard]] double seconds_of(const std::vector<std::uint32_t>& option) const {
    return longest_s(total_of(option));
  }

  /// Changes single regions while that makes the sum of the times' high powers less, and keeps what has the least
  /// longest time.
  void improve(RegionSelection& selection) const {
    std::vector<std::uint32_t> at = selection.option;
    std::vector<double> total = total_of(at);
    Rooms rooms(servers_);
    for (std::size_t n = 0; n < regions_.size(); ++n) rooms.put(nullptr, regions_[n].options[at[n]]);
    double sums = 0;
    for (const int power : powers) {
      bool has_moved = true;
      for (int sweep = 0; sweep < max_sweeps && has_moved && sums < max_sums; ++sweep) {
        has_moved = false;
        for (std::size_t n = 0; n < regions_.size(); ++n) has_moved |= change(n, power, at, total, rooms, sums);
        const double seconds = longest_s(total);
        if (seconds >= selection.seconds * (1 - 1e-9)) continue;
        selection.seconds = seconds;
        selection.option = at;
      }
    }
  }

 private:
  /// Adds `times` an option's load: the busy times of each server's storage and link, and of the clients' links, and
  /// last the latency.
  void add(std::uint32_t region, const Load& load, double times, std::vector<double>& total) const {
    add_to_servers(servers_, region, load, times, total);
    total[resources_ - 2] += times * load.client_s / at_a_time_.nodes;
    total[resources_ - 1] += times * load.latency_s;
  }

  [[nodiscard]] std::vector<double> total_of(const std::vector<std::uint32_t>& option) const {
    std::vector<double> total(resources_);
    for (std::uint32_t n = 0; n < option.size(); ++n) add(n, regions_[n].options[option[n]].load, 1, total);
    return total;
  }

  [[nodiscard]] double longest_s(const std::vector<double>& total) const {
    const double busy_s = *std::max_element(total.begin(), total.end() - 1);
    return std::max(at_a_time_.seconds(busy_s, total.back()), total.back() / at_a_time_.active);
  }

  /// The sum over all resources of (time / scale)^(2^power).
  [[nodiscard]] double potential(const std::vector<double>& total, double scale, int power) const {
    const auto high = [&](double seconds) {
      double times = seconds / scale;
      for (int n = 0; n < power; ++n) times *= times;
      return times;
    };
    double sum = high(total.back() / at_a_time_.active);
    for (std::size_t n = 0; n + 1 < total.size(); ++n) sum += high(at_a_time_.seconds(total[n], total.back()));
    return sum;
  }

  /// Gives region n its best option. Returns whether that is another one.
  bool change(std::size_t n, int power, std::vector<std::uint32_t>& at, std::vector<double>& total, Rooms& rooms,
              double& sums) const {
    const std::vector<LayoutOption>& options = regions_[n].options;
    const auto region = static_cast<std::uint32_t>(n);
    const double scale = longest_s(total);
    if (options.size() < 2 || scale <= 0) return false;
    double least = potential(total, scale, power) * (1 - 1e-9);
    std::vector<double> without = total, best;
    add(region, options[at[n]].load, -1, without);
    std::uint32_t to = at[n];
    for (std::uint32_t k = 0; k < options.size(); ++k) {
      if (k == at[n] || !rooms.fits(&options[at[n]], options[k])) continue;
      std::vector<double> with = without;
      add(region, options[k].load, 1, with);
      const double found = potential(with, scale, power);
      if (found >= least) continue;
      least = found;
      to = k;
      best = std::move(with);
    }
    sums += static_cast<double>(resources_ * options.size());
    if (to == at[n]) return false;
    rooms.put(&options[at[n]], options[to]);
    at[n] = to;
    total = std::move(best);
    return true;
  }

  std::span<const RegionOptions> regions_;
  const Servers& servers_;
  Concurrency at_a_time_;
  std::size_t resources_ = 0;
};

}  // namespace

double requests_of(std::span<const RegionOptions> regions) {
  double requests = 0;
  for (const RegionOptions& region : regions) requests += region.options.front().load.requests;
  return requests;
}

bool are_even(std::span<const RegionOptions> regions) {
  return std::ranges::all_of(regions, [](const RegionOptions& region) {
    return std::ranges::all_of(region.options, [](const LayoutOption& each) { return each.load.servers.empty(); });
  });
}

RegionSelection balanced_servers(std::span<const RegionOptions> regions, const Servers& servers,
                                 std::span<const RegionSelection> starts) {
  const ServerBalance balance(regions, servers);
  if (balance.may_cost_all()) return balance.best_of_all();
  RegionSelection best;
  best.seconds = std::numeric_limits<double>::infinity();
  double bound_s = 0;
  for (RegionSelection at : starts) {
    bound_s = std::max(bound_s, at.bound_s);
    at.seconds = balance.seconds_of(at.option);
    balance.improve(at);
    if (at.seconds < best.seconds) best = std::move(at);
  }
  best.bound_s = bound_s;
  return best;
}

}  // namespace iosig
