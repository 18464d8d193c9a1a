#include "iosig/simulate/plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "iosig/base/mix.h"
#include "iosig/simulate/accesses.h"
#include "iosig/simulate/check.h"
#include "iosig/simulate/striped.h"

namespace iosig::simulate {
namespace {

/// Uniform below n > 0; a function of the key and the number.
std::uint64_t drawn_below(std::uint64_t key, std::uint64_t number, std::uint64_t n) {
  const double uniform = static_cast<double>(mixed(mixed(key) + number) >> 11U) * 0x1p-53;
  return std::min(n - 1, static_cast<std::uint64_t>(uniform * static_cast<double>(n)));
}

enum Purpose : std::uint64_t { which_request, which_place, which_order, which_region };

/// Groups of all regions of a window, one after the other.
class Groups {
 public:
  explicit Groups(std::span<const Region> regions) : regions_(regions) {
    for (std::uint32_t region = 0; region < regions.size(); ++region)
      for (std::uint32_t group = 0; group < regions[region].groups.size(); ++group) {
        count_ += regions[region].groups[group].count;
        ends_.push_back(count_);
        places_.emplace_back(region, group);
      }
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// Request `number` < count() of all; `drawn` chooses the place of a scattered one.
  [[nodiscard]] RegionRequest request(std::uint64_t number, std::uint64_t drawn) const {
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends_, number) - ends_.begin());
    const auto [region, index] = places_[at];
    const RequestGroup& group = regions_[region].groups[index];
    const std::uint64_t in_group = number - (ends_[at] - group.count);
    const std::uint64_t turn = group.is_scattered() ? drawn_below(which_place, drawn, group.places) : in_group;
    return {0, region, group.offset + turn * group.stride, group.length, group.is_write};
  }

 private:
  std::span<const Region> regions_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> ends_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places_;
};

/// The requests as accesses of one file in which the regions begin at multiples of `span`.
Result<std::vector<Access>> accesses_of(std::span<const RegionRequest> requests, std::span<const std::uint64_t> lengths,
                                        std::uint64_t span) {
  std::vector<Access> accesses;
  accesses.reserve(requests.size());
  for (const RegionRequest& each : requests) {
    const std::uint64_t length = each.region < lengths.size() ? lengths[each.region] : 0;
    if (each.offset > length || each.length > length - each.offset)
      return fail(ErrorKind::usage, "a request of {} bytes at {} of region {}: expected one inside the region",
                  each.length, each.offset, each.region);
    accesses.push_back({each.process, each.region * span + each.offset, each.length, each.is_write});
  }
  return accesses;
}

/// The process numbers without gaps: the simulation has a client for each.
void close_gaps(std::vector<Access>& accesses) {
  std::uint32_t most = 0;
  for (const Access& each : accesses) most = std::max(most, each.process);
  std::vector<std::uint32_t> number(most + std::size_t{1}, 0);
  for (const Access& each : accesses) number[each.process] = 1;
  std::exclusive_scan(number.begin(), number.end(), number.begin(), 0U);
  for (Access& each : accesses) each.process = number[each.process];
}

}  // namespace

WindowRequests drawn_requests(std::span<const Region> regions, std::uint32_t processes, Contention contention,
                              std::uint64_t max_drawn) {
  const Groups groups(regions);
  const std::uint64_t count = std::min(groups.count(), max_drawn);
  WindowRequests made;
  if (count == 0) return made;
  made.times = static_cast<double>(groups.count()) / static_cast<double>(count);
  made.requests.reserve(count);
  const std::uint64_t each = groups.count() / count, rest = groups.count() % count;
  std::uint64_t begin = 0;
  for (std::uint64_t n = 0; n < count; ++n) {  // one of each stratum
    const std::uint64_t stratum = each + (n < rest ? 1 : 0);
    made.requests.push_back(groups.request(begin + drawn_below(which_request, n, stratum), n));
    begin += stratum;
  }
  if (contention == Contention::spread)
    for (std::uint64_t n = count; n > 1; --n)
      std::swap(made.requests[n - 1], made.requests[drawn_below(which_order, n, n)]);
  deal(made.requests, processes);
  return made;
}

void deal(std::vector<RegionRequest>& requests, std::uint32_t processes) {
  std::uint32_t next = 0;
  for (RegionRequest& request : requests) {
    request.process = next;
    next = next + 1 == processes ? 0 : next + 1;
  }
}

std::vector<Stripes> usual_stripes(const Plan& plan) {
  const auto& classes = plan.servers.classes;
  std::vector<std::uint64_t> left;
  for (const ServerClass& kind : classes)
    left.push_back(kind.count == 0 ? 0 : kind.capacity_bytes.value_or(UINT64_MAX));
  std::vector<std::uint32_t> order(plan.regions.size());
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint64_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[drawn_below(which_region, n, n)]);
  std::vector<Stripes> all(plan.regions.size());
  for (const std::uint32_t region : order) {
    Stripes stripes(classes.size(), usual_stripe_bytes);
    for (std::size_t n = 0; n < classes.size(); ++n)
      if (classes[n].count == 0) stripes[n] = 0;
    for (bool fits = false; !fits;) {  // the home class has room: the plan put everything somewhere
      const auto bytes = bytes_on_classes(plan.servers, stripes, plan.regions[region].length_bytes);
      fits = true;
      for (std::size_t n = 0; n < classes.size() && fits; ++n)
        if (n != plan.home && bytes[n] > left[n]) stripes[n] = 0, fits = false;
      if (!fits && std::ranges::all_of(stripes, [](std::uint64_t stripe) { return stripe == 0; }))
        stripes[plan.home] = usual_stripe_bytes;
      if (fits)
        for (std::size_t n = 0; n < classes.size(); ++n) left[n] -= std::min(left[n], bytes[n]);
    }
    all[region] = std::move(stripes);
  }
  return all;
}

Result<std::vector<Totals>> run(const Servers& servers, std::span<const std::uint64_t> lengths,
                                std::span<const RegionRequest> requests,
                                std::span<const std::vector<Stripes>> layouts) {
  std::uint64_t span = 1;
  for (const std::uint64_t each : lengths) span = std::max(span, each);
  if (span > (bytes_limit - 1) / std::max<std::uint64_t>(1, lengths.size()))
    return fail(ErrorKind::infeasible, "{} regions of up to {} bytes are too long to simulate", lengths.size(), span);
  for (const std::vector<Stripes>& stripes : layouts)
    if (stripes.size() != lengths.size())
      return fail(ErrorKind::usage, "stripes of {} regions: there are {}", stripes.size(), lengths.size());
  auto hardware = system_of(servers);
  if (!hardware) return pass_on(hardware.error());
  auto accesses = accesses_of(requests, lengths, span);
  if (!accesses) return pass_on(accesses.error());
  std::vector<Totals> all;
  if (accesses->empty()) return std::vector<Totals>(layouts.size());
  close_gaps(*accesses);
  Placement placement = placement_of(servers, layouts);
  PlacedFile file{span, std::move(placement.layouts), {}};
  for (std::vector<std::uint32_t>& layout_of : placement.layout_of) {
    file.layout_of = std::move(layout_of);
    auto totals = run(*hardware, *accesses, file, servers.processes_per_node);
    if (!totals) return pass_on(totals.error());
    all.push_back(*std::move(totals));
  }
  return all;
}

Result<std::vector<SimulatedWindow>> run(const Plan& plan, std::span<const WindowRequests> windows,
                                         std::span<const Stripes> baseline) {
  if (windows.size() != plan.windows.size() || baseline.size() != plan.regions.size())
    return fail(ErrorKind::usage, "requests of {} windows and stripes of {} regions: the plan has {} and {}",
                windows.size(), baseline.size(), plan.windows.size(), plan.regions.size());
  std::vector<std::uint64_t> lengths;
  for (const PlannedRegion& each : plan.regions) lengths.push_back(each.length_bytes);
  std::vector<SimulatedWindow> simulated;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    std::vector<std::vector<Stripes>> layouts(2);
    for (const RegionPlacement& each : plan.windows[n].placements) layouts[0].push_back(each.stripe_bytes);
    layouts[1].assign(baseline.begin(), baseline.end());
    const auto totals = run(plan.servers, lengths, windows[n].requests, layouts);
    if (!totals) return pass_on(totals.error());
    const Totals& planned = totals->front();
    simulated.push_back({planned.requests, static_cast<double>(planned.bytes) * windows[n].times,
                         planned.end_s * windows[n].times, totals->back().end_s * windows[n].times});
  }
  return simulated;
}

}  // namespace iosig::simulate
