#include "iosig/simulate/striped.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace iosig::simulate {
namespace {

constexpr double free_link_bytes_per_s = 1e15;

double rate_of(double s_per_byte) { return s_per_byte > 0 ? 1 / s_per_byte : free_link_bytes_per_s; }

DiskCosts costs_of(const ServiceTime& service, const DiskHabit& habit) {
  return {.start_s = service.startup_s,
          .near_start_s = service.startup_s * habit.near_share,
          .spread = habit.spread,
          .bytes_per_s = rate_of(service.s_per_byte)};
}

Layout layout_of(const Servers& servers, const Stripes& stripes, std::uint32_t rotation) {
  std::vector<Stripe> list;
  std::uint32_t first = 0;
  for (std::size_t n = 0; n < servers.classes.size(); ++n) {
    const std::uint32_t count = servers.classes[n].count;
    for (std::uint32_t turn = 0; turn < count; ++turn) list.push_back({first + (rotation + turn) % count, stripes[n]});
    first += count;
  }
  return Layout(list);
}

/// After how many regions the rotation repeats.
std::uint32_t turns_of(const Servers& servers) {
  std::uint64_t turns = 1;
  for (const ServerClass& kind : servers.classes)
    if (kind.count > 0) turns = std::lcm(turns, std::uint64_t{kind.count});
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(turns, UINT32_MAX));
}

}  // namespace

Result<System> system_of(const Servers& servers, std::span<const DiskHabit> habits) {
  if (auto sound = checked(servers); !sound) return pass_on(sound.error());
  if (!habits.empty() && habits.size() != servers.classes.size())
    return fail(ErrorKind::usage, "{} habits of disks: expected one for each of {} classes", habits.size(),
                servers.classes.size());
  System system;
  system.latency_s = servers.network.connect_s;
  const double link_bytes_per_s = rate_of(servers.network.s_per_byte);
  for (std::size_t n = 0; n < servers.classes.size(); ++n) {
    const ServerClass& kind = servers.classes[n];
    const DiskHabit habit = habits.empty() ? DiskHabit{} : habits[n];
    const Server server{costs_of(kind.read, habit), costs_of(kind.write, habit), link_bytes_per_s};
    system.servers.insert(system.servers.end(), kind.count, server);
  }
  system.nodes = {{link_bytes_per_s}};
  return system;
}

Placement placement_of(const Servers& servers, std::span<const std::vector<Stripes>> stripes) {
  Placement placement;
  const std::uint32_t turns = turns_of(servers);
  std::map<std::pair<Stripes, std::uint32_t>, std::uint32_t> known;
  for (const std::vector<Stripes>& window : stripes) {
    auto& numbers = placement.layout_of.emplace_back();
    for (std::uint32_t region = 0; region < window.size(); ++region) {
      const std::pair<Stripes, std::uint32_t> wanted{window[region], region % turns};
      const auto [at, is_new] = known.try_emplace(wanted, static_cast<std::uint32_t>(placement.layouts.size()));
      if (is_new) placement.layouts.push_back(layout_of(servers, wanted.first, wanted.second));
      numbers.push_back(at->second);
    }
  }
  return placement;
}

std::vector<std::vector<Region>> regions_of(const HotRegions& workload, std::uint64_t requests) {
  std::vector<std::vector<Region>> windows;
  for (const std::vector<double>& shares : shares_of(workload)) {
    std::vector<Region>& regions = windows.emplace_back();
    for (std::size_t n = 0; n < shares.size(); ++n) {
      Region& region = regions.emplace_back();
      region.offset = n * workload.region_bytes;
      region.length = workload.region_bytes;
      const auto count = static_cast<std::uint64_t>(std::llround(shares[n] * static_cast<double>(requests)));
      if (count == 0) continue;
      region.groups.push_back({.length = workload.request_bytes,
                               .stride = workload.request_bytes,
                               .count = count,
                               .is_write = workload.is_write,
                               .places = std::max<std::uint64_t>(1, workload.region_bytes / workload.request_bytes)});
    }
  }
  return windows;
}

}  // namespace iosig::simulate
