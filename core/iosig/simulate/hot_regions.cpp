#include "iosig/simulate/hot_regions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "iosig/base/mix.h"
#include "iosig/simulate/check.h"

namespace iosig::simulate {
namespace {

/// Numbers that are functions of the seed, of what they are for, and of a count.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t purpose) : key_(mixed(mixed(seed) + purpose)) {}
  [[nodiscard]] std::uint64_t bits(std::uint64_t number) const { return mixed(key_ + number); }
  [[nodiscard]] double uniform(std::uint64_t number) const { return static_cast<double>(bits(number) >> 11) * 0x1p-53; }
  /// Below n.
  [[nodiscard]] std::uint64_t below(std::uint64_t number, std::uint64_t n) const {
    return std::min(n - 1, static_cast<std::uint64_t>(uniform(number) * static_cast<double>(n)));
  }

 private:
  std::uint64_t key_;
};

void shuffle(std::vector<std::uint32_t>& list, const Draws& draws) {
  for (std::size_t n = list.size(); n > 1; --n) std::swap(list[n - 1], list[draws.below(n, n)]);
}

/// The regions in the order of their popularity, by window.
std::vector<std::vector<std::uint32_t>> ranked_regions(const HotRegions& workload) {
  std::vector<std::uint32_t> ranked(workload.regions);
  std::iota(ranked.begin(), ranked.end(), 0U);
  shuffle(ranked, {workload.seed, 0});
  std::vector<std::vector<std::uint32_t>> windows{ranked};
  const auto changing = static_cast<std::size_t>(std::lround(workload.drift * workload.regions));
  while (windows.size() < workload.windows) {
    std::vector<std::uint32_t> places(workload.regions);
    std::iota(places.begin(), places.end(), 0U);
    shuffle(places, {workload.seed, windows.size()});
    places.resize(std::min<std::size_t>(changing, places.size()));
    const std::vector<std::uint32_t> before = ranked;
    for (std::size_t n = 0; n < places.size(); ++n) ranked[places[n]] = before[places[(n + 1) % places.size()]];
    windows.push_back(ranked);
  }
  return windows;
}

/// Zipf's weights, by popularity; their sum is 1.
std::vector<double> weights_of(const HotRegions& workload) {
  std::vector<double> weights(workload.regions);
  double sum = 0;
  for (std::uint32_t n = 0; n < workload.regions; ++n) sum += weights[n] = std::pow(n + 1.0, -workload.skew);
  for (double& weight : weights) weight /= sum;
  return weights;
}

struct Move {
  std::uint32_t region = 0, from = 0, to = 0;
};

/// The processes and the movers.
class Traffic {
 public:
  Traffic(const HotRegions& workload, const Placement& placement, const Moving& moving)
      : workload_(workload), placement_(placement), moving_(moving), ranked_(ranked_regions(workload)) {
    const std::vector<double> weights = weights_of(workload);
    added_.resize(weights.size());
    std::partial_sum(weights.begin(), weights.end(), added_.begin());
    layout_of_ = placement.layout_of.front();
    sent_.resize(workload.processes);
    movers_.resize(moving.movers);
    for (std::uint32_t window = 0; window < workload.windows; ++window) plan_moves(window);
  }

  bool next(std::uint32_t client, double now_s, ClientRequest& request) {
    if (client >= workload_.processes) return next_of_mover(client - workload_.processes, now_s, request);
    const auto window = static_cast<std::size_t>(now_s / workload_.window_s);
    if (window >= workload_.windows) return false;
    if (moving_.movers == 0) layout_of_ = placement_.layout_of[window];
    const std::uint64_t sent = sent_[client]++;
    const Draws draws(workload_.seed, first_process + (workload_.is_colliding ? 0 : client));
    const auto rank = std::ranges::upper_bound(added_, draws.uniform(2 * sent)) - added_.begin();
    request.region = ranked_[window][static_cast<std::size_t>(std::min<std::ptrdiff_t>(rank, workload_.regions - 1))];
    request.offset =
        draws.below(2 * sent + 1, workload_.region_bytes / workload_.request_bytes) * workload_.request_bytes;
    request.bytes = workload_.request_bytes;
    request.is_write = workload_.is_write;
    request.layout = layout_of_[request.region];
    return true;
  }

  [[nodiscard]] std::uint64_t moved() const { return moved_; }

 private:
  static constexpr std::uint64_t first_process = 1ULL << 32;  ///< the purposes below are those of windows

  struct Mover {
    std::vector<std::pair<std::size_t, Move>> moves;  ///< with their windows, in order
    std::size_t at = 0;
    std::uint64_t done_bytes = 0;
    bool is_read = false;  ///< the chunk at done_bytes
  };

  void plan_moves(std::uint32_t window) {
    if (window == 0 || movers_.empty()) return;
    const auto& before = placement_.layout_of[window - 1];
    const auto& after = placement_.layout_of[window];
    std::vector<bool> is_planned(workload_.regions);
    std::size_t next = 0;
    const auto plan = [&](std::uint32_t region) {
      if (before[region] == after[region] || is_planned[region]) return;
      is_planned[region] = true;
      movers_[next++ % movers_.size()].moves.emplace_back(window, Move{region, before[region], after[region]});
    };
    if (window < placement_.order.size()) std::ranges::for_each(placement_.order[window], plan);
    for (std::uint32_t region = 0; region < workload_.regions; ++region) plan(region);
  }

  bool next_of_mover(std::uint32_t number, double now_s, ClientRequest& request) {
    Mover& mover = movers_[number];
    const auto share = static_cast<std::uint64_t>(moving_.share * static_cast<double>(workload_.region_bytes));
    const std::uint64_t total_bytes = std::max<std::uint64_t>(1, share);
    if (request.bytes > 0) {  // the last request has ended
      if (!mover.is_read) {
        mover.is_read = true;
      } else {
        mover.is_read = false;
        mover.done_bytes += request.bytes;
      }
      if (mover.done_bytes >= total_bytes) {
        const Move& done = mover.moves[mover.at++].second;
        layout_of_[done.region] = done.to;
        ++moved_;
        mover.done_bytes = 0;
      }
    }
    if (mover.at == mover.moves.size()) return false;
    const auto& [window, move] = mover.moves[mover.at];
    request = {.layout = mover.is_read ? move.to : move.from,
               .region = move.region,
               .offset = mover.done_bytes,
               .bytes = std::min(moving_.chunk_bytes, total_bytes - mover.done_bytes),
               .is_write = mover.is_read,
               .think_s = std::max(0.0, static_cast<double>(window) * workload_.window_s - now_s)};
    return now_s + request.think_s < workload_.window_s * workload_.windows;
  }

  const HotRegions& workload_;
  const Placement& placement_;
  const Moving& moving_;
  std::vector<std::vector<std::uint32_t>> ranked_;
  std::vector<double> added_;  ///< weights by popularity, added up
  std::vector<std::uint32_t> layout_of_;
  std::vector<std::uint64_t> sent_;
  std::vector<Mover> movers_;
  std::uint64_t moved_ = 0;
};

bool is_number(double number) { return std::isfinite(number) && number >= 0; }

Result<void> check(const HotRegions& workload, const Placement& placement, const Moving& moving) {
  if (auto sound = checked(workload); !sound) return sound;
  if (!(moving.share >= 0 && moving.share <= 1) || moving.chunk_bytes == 0)
    return fail(ErrorKind::usage, "{} of a region moved in chunks of {}: expected 0 to 1, and at least 1", moving.share,
                moving.chunk_bytes);
  if (placement.layout_of.size() < workload.windows)
    return fail(ErrorKind::usage, "a placement for {} windows: expected {}", placement.layout_of.size(),
                workload.windows);
  for (const auto& window : placement.order)
    for (const std::uint32_t region : window)
      if (region >= workload.regions)
        return fail(ErrorKind::usage, "an order names region {}: expected one of {}", region, workload.regions);
  for (const auto& window : placement.layout_of)
    if (window.size() != workload.regions)
      return fail(ErrorKind::usage, "a placement of {} regions: expected {}", window.size(), workload.regions);
  return {};
}

}  // namespace

Result<void> checked(const HotRegions& workload) {
  if (!is_number(workload.skew) || !is_number(workload.drift) || workload.drift > 1 || !(workload.window_s > 0) ||
      !std::isfinite(workload.window_s))
    return fail(ErrorKind::usage, "skew {}, drift {}, windows of {} s: expected at least 0, 0 to 1, more than 0 s",
                workload.skew, workload.drift, workload.window_s);
  if (workload.processes == 0 || workload.regions == 0 || workload.windows == 0 || workload.request_bytes == 0)
    return fail(ErrorKind::usage,
                "{} processes, {} regions, {} windows, requests of {} bytes: expected at least 1 of each",
                workload.processes, workload.regions, workload.windows, workload.request_bytes);
  if (workload.request_bytes > workload.region_bytes)
    return fail(ErrorKind::usage, "requests of {} bytes: expected at most {}, the bytes of a region",
                workload.request_bytes, workload.region_bytes);
  if (workload.region_bytes > bytes_limit / workload.regions)
    return fail(ErrorKind::usage, "{} regions of {} bytes: expected at most 2^62 bytes together", workload.regions,
                workload.region_bytes);
  if (std::uint64_t{workload.regions} * workload.windows > max_region_windows)
    return fail(ErrorKind::usage, "{} regions in {} windows: expected at most {} together", workload.regions,
                workload.windows, max_region_windows);
  return {};
}

std::vector<std::vector<double>> shares_of(const HotRegions& workload) {
  const std::vector<double> weights = weights_of(workload);
  std::vector<std::vector<double>> shares;
  for (const auto& ranked : ranked_regions(workload)) {
    auto& window = shares.emplace_back(workload.regions);
    for (std::size_t n = 0; n < ranked.size(); ++n) window[ranked[n]] = weights[n];
  }
  return shares;
}

Result<Run> run(const System& hardware, const HotRegions& workload, const Placement& placement, const Moving& moving) {
  if (auto sound = check(workload, placement, moving); !sound) return pass_on(sound.error());
  System system = hardware;
  if (system.nodes.empty()) return fail(ErrorKind::usage, "no node: expected one, of which the others are copies");
  system.layouts = placement.layouts;
  system.clients.clear();
  for (std::uint32_t n = 0; n < workload.processes; ++n)
    system.clients.push_back({.node = n, .is_in_step = workload.is_colliding});
  for (std::uint32_t n = 0; n < moving.movers; ++n)
    system.clients.push_back({.node = workload.processes + n, .is_counted = false});
  system.nodes.assign(system.clients.size(), hardware.nodes.front());
  Traffic traffic(workload, placement, moving);
  auto totals = run(system, [&](std::uint32_t client, double now_s, ClientRequest& request) {
    return traffic.next(client, now_s, request);
  });
  if (!totals) return pass_on(totals.error());
  return Run{*std::move(totals), traffic.moved()};
}

}  // namespace iosig::simulate
