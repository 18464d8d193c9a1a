#include "iosig/decide/trial.h"

#include <algorithm>
#include <numeric>

#include "iosig/base/units.h"
#include "iosig/cost/striping.h"
#include "iosig/decide/selection.h"

namespace iosig {
namespace {

constexpr std::size_t moments = 8;          ///< of a window
constexpr std::size_t few_requests = 4096;  ///< with which all layouts are tried
constexpr std::size_t finalists = 4, max_tried_windows = 16;
constexpr double noise = 0.02;  ///< of a trial
constexpr std::uint64_t least_stripe = 4 * KiB, largest_stripe = MiB, unit_bytes = 512;

std::uint64_t total_of(std::span<const std::uint64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

/// Whether every server has room for all regions.
bool fits(const Stripes& stripes, std::span<const std::uint64_t> lengths, const Servers& servers) {
  std::vector<double> used(servers.classes.size());
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    const auto bytes = bytes_on_classes(servers, stripes, lengths[n]);
    for (std::size_t number = 0; number < used.size(); ++number) used[number] += static_cast<double>(bytes[number]);
  }
  for (std::size_t number = 0; number < used.size(); ++number) {
    const auto& capacity = servers.classes[number].capacity_bytes;
    if (capacity && used[number] > static_cast<double>(*capacity)) return false;
  }
  return true;
}

/// Returns the share of all bytes that a server of each class has room for. The home class has 0: it takes the rest.
std::vector<double> shares_of_servers(std::uint64_t bytes, const Servers& servers) {
  std::vector<double> shares(servers.classes.size());
  const std::uint32_t home = home_class(servers);
  for (std::uint32_t number = 0; number < shares.size(); ++number) {
    const ServerClass& each = servers.classes[number];
    if (number == home || each.count == 0) continue;
    shares[number] = each.capacity_bytes ? static_cast<double>(*each.capacity_bytes) / static_cast<double>(bytes) : 1;
  }
  return shares;
}

/// Seconds for all requests of the windows. `most`: requests of a window that are simulated.
Result<double> seconds_of(const WholeLayout& layout, std::span<const std::uint64_t> lengths, const Servers& servers,
                          std::span<const simulate::WindowRequests> windows, std::size_t most) {
  std::vector<std::size_t> used;
  for (std::size_t n = 0; n < windows.size(); ++n)
    if (!windows[n].requests.empty()) used.push_back(n);
  const std::size_t tried = std::min(used.size(), max_tried_windows);
  double seconds = 0;
  for (std::size_t n = 0; n < tried; ++n) {
    const std::size_t window = used[n * used.size() / tried];
    const simulate::WindowRequests some = requests_at_moments(windows[window].requests, most / tried + 1);
    const std::vector<Stripes>& stripes = layout.stripes[layout.stripes.size() == 1 ? 0 : window];
    const auto totals = simulate::run(servers, lengths, some.requests, std::span(&stripes, 1));
    if (!totals) return pass_on(totals.error());
    seconds += totals->front().end_s * some.times * windows[window].times;
  }
  if (tried > 0) seconds *= static_cast<double>(used.size()) / static_cast<double>(tried);
  return seconds + layout.move_s;
}

}  // namespace

simulate::WindowRequests requests_at_moments(std::span<const RegionRequest> requests, std::size_t most) {
  simulate::WindowRequests made;
  if (requests.size() <= most) {
    made.requests.assign(requests.begin(), requests.end());
    return made;
  }
  std::vector<std::uint64_t> sent;  // by each process
  for (const RegionRequest& each : requests) {
    if (each.process >= sent.size()) sent.resize(each.process + std::size_t{1});
    ++sent[each.process];
  }
  std::vector<std::uint64_t> seen(sent.size());
  const double share = static_cast<double>(most) / static_cast<double>(requests.size());
  for (const RegionRequest& each : requests) {
    const std::uint64_t period = std::max<std::uint64_t>(1, sent[each.process] / moments);
    const auto kept = static_cast<std::uint64_t>(share * static_cast<double>(period)) + 1;
    if (seen[each.process]++ % period < kept) made.requests.push_back(each);
  }
  made.times = static_cast<double>(requests.size()) / static_cast<double>(made.requests.size());
  return made;
}

std::vector<Stripes> even_layouts(std::span<const std::uint64_t> lengths, const Servers& servers,
                                  std::uint64_t request_bytes) {
  std::vector<Stripes> layouts;
  const std::uint64_t bytes = total_of(lengths);
  if (bytes == 0) return layouts;
  const std::uint32_t home = home_class(servers);
  const std::vector<double> shares = shares_of_servers(bytes, servers);
  double home_share = 1;  // if the others are filled
  std::uint64_t count = 0;
  for (std::size_t number = 0; number < shares.size(); ++number) {
    home_share -= shares[number] * servers.classes[number].count;
    count += servers.classes[number].count;
  }
  const auto add = [&](const Stripes& stripes) {
    if (std::ranges::find(layouts, stripes) == layouts.end() && fits(stripes, lengths, servers))
      layouts.push_back(stripes);
  };
  for (std::uint64_t stripe = least_stripe; stripe <= largest_stripe; stripe *= 2) {
    if (stripe * count * 2 < request_bytes) continue;
    Stripes alone(servers.classes.size()), as_much = alone, filled = alone;
    for (std::uint32_t number = 0; number < alone.size(); ++number) {
      if (servers.classes[number].count == 0) continue;
      as_much[number] = filled[number] = stripe;
      if (number == home) alone[number] = stripe;
      if (number == home || home_share <= 0) continue;
      const double room = static_cast<double>(stripe * servers.classes[home].count) * shares[number] / home_share;
      filled[number] = static_cast<std::uint64_t>(room) / unit_bytes * unit_bytes;
      as_much[number] = std::min(stripe, filled[number]);
    }
    add(alone);
    add(as_much);
    add(filled);
  }
  return layouts;
}

std::uint64_t usual_length(std::span<const simulate::WindowRequests> windows) {
  std::vector<std::uint64_t> lengths;
  for (const simulate::WindowRequests& window : windows)
    for (const RegionRequest& each : window.requests) lengths.push_back(each.length);
  if (lengths.empty()) return 0;
  const auto middle = lengths.begin() + (std::ssize(lengths) - 1) / 2;
  std::ranges::nth_element(lengths, middle);
  return *middle;
}

Result<Trial> best_by_trial(std::span<const WholeLayout> layouts, std::span<const std::uint64_t> lengths,
                            const Servers& servers, std::span<const simulate::WindowRequests> windows) {
  struct Tried {
    std::size_t number;
    double seconds;
  };
  std::vector<Tried> tried;
  for (std::size_t n = 0; n < layouts.size(); ++n) tried.push_back({n, 0});
  for (const std::size_t most : {few_requests, max_trial_requests}) {
    for (Tried& each : tried) {
      const auto seconds = seconds_of(layouts[each.number], lengths, servers, windows, most);
      if (!seconds) return pass_on(seconds.error());
      each.seconds = *seconds;
    }
    std::ranges::stable_sort(tried.begin() + 1, tried.end(), {}, &Tried::seconds);
    if (tried.size() > finalists) tried.resize(finalists);
  }
  std::ranges::sort(tried, {}, &Tried::number);
  const double least = std::ranges::min_element(tried, {}, &Tried::seconds)->seconds;
  const auto best = std::ranges::find_if(tried, [&](const Tried& each) { return each.seconds <= least * (1 + noise); });
  return Trial{best->number, best->seconds, tried.front().seconds};
}

}  // namespace iosig
