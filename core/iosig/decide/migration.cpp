#include "iosig/decide/migration.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "iosig/decide/regions.h"

namespace iosig {
namespace {

constexpr std::size_t max_options = 12;        ///< of a region, from all windows
constexpr std::size_t max_looks = 10'000'000;  ///< loads that one plan may add up; beyond, it looks less far ahead

using Options = std::vector<std::uint32_t>;

/// Plans by looking a given number of windows ahead.
class Planner {
 public:
  Planner(std::span<const std::vector<RegionOptions>> windows, std::span<const std::uint64_t> lengths,
          const Servers& servers, Contention contention, const MigrationOptions& options)
      : windows_(windows), lengths_(lengths), servers_(servers), contention_(contention), options_(options) {}

  /// `ahead` 0: does not move after window 0, whose layout is best for all windows, or `current`.
  [[nodiscard]] Result<std::vector<WindowPlan>> plan(std::span<const std::uint32_t> current, std::size_t ahead,
                                                     bool counts_moves) {
    std::vector<WindowPlan> plans;
    Options at(current.begin(), current.end());
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      WindowPlan& plan = plans.emplace_back();
      plan.option = at;
      if (ahead > 0 || at.empty()) {
        const std::size_t windows = ahead > 0 ? ahead : windows_.size();
        auto selected = selected_at(i, i + std::min(windows, windows_.size() - i), at, counts_moves);
        if (!selected) return pass_on(std::move(selected.error()));
        plan.option = *std::move(selected);
        if (!at.empty()) plan.steps = ordered_steps(windows_[i], lengths_, servers_, at, plan.option);
      }
      predict(i, plan);
      at = plan.option;
    }
    return plans;
  }

  /// Whether looking so far ahead takes an acceptable time. One window ahead always does.
  [[nodiscard]] bool may_look(std::size_t ahead) const {
    if (ahead == 1) return true;
    std::size_t options = 0;
    for (const RegionOptions& each : windows_.front()) options += each.options.size();
    return ahead <= max_looks / std::max<std::size_t>(1, windows_.size() * options);
  }

  [[nodiscard]] double total_s(const std::vector<WindowPlan>& plans) const {
    double sum = 0;
    for (std::size_t i = 0; i < plans.size(); ++i)
      sum += times(i) * plans[i].seconds + options_.copy_weight * plans[i].move_s;
    return sum;
  }

 private:
  /// How often the requests of window i count.
  [[nodiscard]] double times(std::size_t i) const { return i + 1 == windows_.size() ? options_.horizon : 1; }

  /// Returns the options for the windows from `first` to before `end`. Plans that look differently far ahead begin
  /// alike, and see the same last windows: each selection is made once.
  [[nodiscard]] Result<Options> selected_at(std::size_t first, std::size_t end, const Options& at, bool counts_moves) {
    const auto [known, is_new] = selected_.try_emplace({first, end, counts_moves && !at.empty(), at});
    if (!is_new) return known->second;
    auto selected = select_regions(ahead_of(first, end, at, counts_moves), servers_, contention_);
    if (!selected) return pass_on(std::move(selected.error()));
    known->second = std::move(selected->option);
    return known->second;
  }

  /// Returns the options with the loads of the windows from `first` to before `end`, and of moving to them from `at`.
  [[nodiscard]] std::vector<RegionOptions> ahead_of(std::size_t first, std::size_t end, const Options& at,
                                                    bool counts_moves) const {
    std::vector<RegionOptions> all(windows_[first]);
    for (std::size_t n = 0; n < all.size(); ++n)
      for (std::uint32_t k = 0; k < all[n].options.size(); ++k) {
        LayoutOption& option = all[n].options[k];
        option.load = {};
        option.seconds = 0;
        for (std::size_t i = first; i < end; ++i) {
          add_load(servers_, option.load, windows_[i][n].options[k].load, times(i));
          option.seconds += times(i) * windows_[i][n].options[k].seconds;
        }
        if (at.empty() || !counts_moves || at[n] == k) continue;
        const Load copy = copy_load(servers_, all[n].options[at[n]].stripes, option.stripes, lengths_[n]);
        add_load(servers_, option.load, copy, options_.copy_weight);
        option.seconds += options_.copy_weight * busiest_s(servers_, copy);
      }
    return all;
  }

  void predict(std::size_t i, WindowPlan& plan) const {
    std::vector<Load> requests, copies;
    for (std::size_t n = 0; n < plan.option.size(); ++n)
      requests.push_back(windows_[i][n].options[plan.option[n]].load);
    for (const MigrationStep& step : plan.steps) {
      const std::vector<LayoutOption>& options = windows_[i][step.region].options;
      copies.push_back(copy_load(servers_, options[step.from].stripes, options[step.to].stripes, step.bytes));
    }
    plan.seconds = loaded_seconds(servers_, requests, contention_);
    plan.move_s = loaded_seconds(servers_, copies, contention_);
  }

  std::span<const std::vector<RegionOptions>> windows_;
  std::span<const std::uint64_t> lengths_;
  const Servers& servers_;
  Contention contention_;
  const MigrationOptions& options_;
  std::map<std::tuple<std::size_t, std::size_t, bool, Options>, Options> selected_;
};

Result<void> checked_windows(std::span<const std::vector<RegionOptions>> windows,
                             std::span<const std::uint64_t> lengths, std::span<const std::uint32_t> current) {
  for (const std::vector<RegionOptions>& window : windows) {
    if (window.size() != lengths.size() || (!current.empty() && current.size() != lengths.size()))
      return fail(ErrorKind::usage, "{} regions in a window, {} lengths and {} current layouts: expected one each",
                  window.size(), lengths.size(), current.size());
    for (std::size_t n = 0; n < window.size(); ++n) {
      const std::size_t options = window[n].options.size();
      if (options == 0 || options != windows[0][n].options.size() || (!current.empty() && current[n] >= options))
        return fail(ErrorKind::usage,
                    "region {}: {} options; expected the same in all windows, and the current layout "
                    "among them: use same_options",
                    n, options);
    }
  }
  return {};
}

/// Gives all options the load of one window's requests. Equal regions have equal loads.
void put_loads(std::span<const Region> regions, const Servers& servers, bool keeps_servers,
               std::vector<RegionOptions>& window) {
  std::map<std::pair<std::size_t, Stripes>, Load> known;
  const std::vector<std::size_t> first = first_equal_regions(regions);
  for (std::size_t n = 0; n < window.size(); ++n)
    for (LayoutOption& option : window[n].options) {
      const auto [load, is_new] = known.try_emplace({first[n], option.stripes});
      if (is_new) load->second = load_of(servers, option.stripes, regions[n].groups);
      if (!keeps_servers) load->second.servers.clear();
      option.load = load->second;
      option.seconds = busiest_s(servers, option.load);
    }
}

}  // namespace

Load copy_load(const Servers& servers, const Stripes& from, const Stripes& to, std::uint64_t length) {
  Load load;
  load.classes.resize(servers.classes.size());
  const auto add = [&](const Stripes& stripes, bool is_write) {
    double period = 0;
    for (std::size_t number = 0; number < stripes.size(); ++number)
      period += static_cast<double>(stripes[number]) * servers.classes[number].count;
    for (std::size_t number = 0; number < stripes.size(); ++number) {
      if (stripes[number] == 0 || servers.classes[number].count == 0) continue;
      const ServiceTime& service = servers.classes[number].service(is_write);
      const double bytes = static_cast<double>(length) * static_cast<double>(stripes[number]) / period;
      ClassLoad& sum = load.classes[number];
      sum.storage_s += service.startup_s + bytes * service.s_per_byte;
      // Links are full duplex: what a server reads leaves while what it writes comes.
      sum.network_s = std::max(sum.network_s, bytes * servers.network.s_per_byte);
    }
  };
  add(from, false);
  add(to, true);
  for (ClassLoad& each : load.classes) {
    each.mean_storage_s = each.storage_s;
    each.mean_network_s = each.network_s;
  }
  load.bytes = static_cast<double>(length);
  return load;
}

Result<std::vector<WindowPlan>> plan_migration(std::span<const std::vector<RegionOptions>> windows,
                                               std::span<const std::uint64_t> lengths, const Servers& servers,
                                               Contention contention, std::span<const std::uint32_t> current,
                                               const MigrationOptions& options) {
  if (auto done = checked_windows(windows, lengths, current); !done) return pass_on(std::move(done.error()));
  Planner planner(windows, lengths, servers, contention, options);
  std::optional<std::vector<WindowPlan>> best;
  double best_s = std::numeric_limits<double>::infinity();
  const auto consider = [&](Result<std::vector<WindowPlan>> plan) -> Result<void> {
    if (!plan) return pass_on(std::move(plan.error()));
    const double total_s = planner.total_s(*plan);
    if (!best || total_s < best_s) {
      best_s = total_s;
      best = std::move(*plan);
    }
    return {};
  };
  // First what moves least: it wins a tie.
  if (auto done = consider(planner.plan(current, 0, true)); !done) return pass_on(std::move(done.error()));
  for (std::size_t ahead = 1; planner.may_look(ahead); ahead *= 2) {
    if (auto done = consider(planner.plan(current, ahead, true)); !done) return pass_on(std::move(done.error()));
    if (ahead >= windows.size()) break;
  }
  if (auto done = consider(planner.plan(current, 1, false)); !done) return pass_on(std::move(done.error()));
  return *std::move(best);
}

std::vector<std::vector<RegionOptions>> same_options(std::span<const std::vector<Region>> regions,
                                                     const Servers& servers, const StripeOptions& options,
                                                     unsigned threads) {
  if (regions.empty()) return {};
  std::vector<Region> together(regions[0]);
  for (std::size_t i = 1; i < regions.size(); ++i)
    for (std::size_t n = 0; n < together.size(); ++n)
      together[n].groups.insert(together[n].groups.end(), regions[i][n].groups.begin(), regions[i][n].groups.end());
  std::vector<RegionOptions> all = layout_options(together, servers, options, threads);
  // All windows in one call: what is alike in several is searched once, and the effort is limited for all together.
  std::vector<Region> each_window;
  for (std::size_t i = 0; i < regions.size() && regions.size() > 1; ++i)
    each_window.insert(each_window.end(), regions[i].begin(), regions[i].end());
  std::vector<RegionOptions> of_windows = layout_options(each_window, servers, options, threads);
  for (std::size_t i = 0; i < regions.size() && regions.size() > 1; ++i) {
    for (std::size_t n = 0; n < all.size(); ++n)
      for (LayoutOption& option : of_windows[i * all.size() + n].options) {
        const bool is_known =
            std::ranges::find(all[n].options, option.stripes, &LayoutOption::stripes) != all[n].options.end();
        if (!is_known && !regions[i][n].groups.empty() && all[n].options.size() < max_options)
          all[n].options.push_back(std::move(option));
      }
  }
  std::vector<std::vector<RegionOptions>> windows(regions.size(), all);
  const bool keeps_servers = keeps_server_loads(regions.size() * all.size(), servers);
  for (std::size_t i = 0; i < regions.size(); ++i) put_loads(regions[i], servers, keeps_servers, windows[i]);
  return windows;
}

}  // namespace iosig
