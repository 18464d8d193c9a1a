#include "iosig/decide/plan_input.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/adaptive_windows.h"
#include "iosig/decide/plan_current.h"

namespace iosig {
namespace {

/// Appends the regions of a file to a plan's.
void append_regions(std::uint32_t file, const RegionBounds& bounds, std::vector<PlannedRegion>& regions) {
  std::uint64_t begin = 0;
  std::uint32_t number = 0;
  for (const std::uint64_t end : bounds.ends) {
    regions.push_back({file, number++, begin, end - begin});
    begin = end;
  }
}

std::uint64_t end_of(const std::vector<Request>& requests) {
  std::uint64_t end = 0;
  for (const Request& each : requests) end = std::max(end, each.offset + each.length);
  return end;
}

Result<RegionBounds> bounds_of(const std::vector<Request>& requests, const PlanGranularity& granularity) {
  const std::uint64_t bytes = end_of(requests);
  if (!granularity.is_adaptive) return fixed_regions(bytes, granularity.region_bytes);
  auto units = fixed_regions(bytes, std::min(default_unit_bytes, granularity.region_bytes));
  if (!units) return units;
  RegionCollector collector(*units);
  if (auto added = collector.add(requests); !added) return pass_on(added.error());
  return adaptive_regions(collector.regions(), {.max_region_bytes = granularity.region_bytes});
}

tl::unexpected<Error> too_many(double windows, std::size_t regions) {
  return fail(
      ErrorKind::usage,
      "{:.10g} window{} of {} region{} or more are too many to plan, which is at most {} regions in all windows "
      "together: use longer windows or larger regions",
      windows, windows == 1 ? "" : "s", regions, regions == 1 ? "" : "s", max_placements);
}

/// Regions of a file that only a pattern describes, `bytes` long; without those at its end that are not used, as after
/// an access that an exception replaces.
Result<RegionBounds> bounds_of(const Pattern& pattern, std::uint64_t bytes, bool is_write,
                               const PlanGranularity& granularity) {
  constexpr std::uint64_t max_units = 1U << 16;
  std::uint64_t unit_bytes = granularity.region_bytes;
  if (granularity.is_adaptive)
    for (unit_bytes = std::min(default_unit_bytes, unit_bytes); bytes / unit_bytes > max_units;) unit_bytes *= 2;
  auto units = fixed_regions(bytes, unit_bytes);
  if (!units) return units;
  if (units->ends.size() > max_placements) return too_many(1, units->ends.size());
  RegionCollector collector(*units);
  if (auto added = collector.add(pattern, is_write); !added) return pass_on(added.error());
  std::vector<Region> regions = collector.regions();
  while (regions.size() > 1 && regions.back().groups.empty()) regions.pop_back();
  units->ends.resize(regions.size());
  if (!granularity.is_adaptive) return units;
  return adaptive_regions(regions, {.max_region_bytes = granularity.region_bytes});
}

/// Appends the regions of one file to each window. `requests` are sorted by start.
Result<void> add_regions(std::span<const Request> requests, const RegionBounds& bounds, std::uint32_t file,
                         std::vector<PlanInput::Window>& windows) {
  std::size_t begin = 0;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    std::size_t end = begin;
    const bool is_last = n + 1 == windows.size();  // rounding leaves nothing behind it
    while (end < requests.size() && (is_last || requests[end].start_s < windows[n].end_s)) ++end;
    RegionCollector collector(bounds, file);
    if (auto added = collector.add(requests.subspan(begin, end - begin)); !added) return added;
    std::ranges::move(collector.regions(), std::back_inserter(windows[n].regions));
    begin = end;
  }
  return {};
}

/// The window of a request that begins at `start_s`, as add_regions finds it.
std::size_t window_at(const PlanInput& input, double start_s) {
  const auto after = std::ranges::upper_bound(input.windows, start_s, {}, &PlanInput::Window::end_s);
  return std::min(static_cast<std::size_t>(after - input.windows.begin()), input.windows.size() - 1);
}

/// Replaces windows that use the regions alike by one. `bounds`: of each file's regions.
void join_windows(const std::map<std::string, std::vector<Request>, std::less<>>& files,
                  std::span<const RegionBounds> bounds, PlanInput& input) {
  std::vector<std::vector<std::uint64_t>> counts(input.windows.size(),
                                                 std::vector<std::uint64_t>(input.regions.size()));
  std::size_t file = 0, first_region = 0;
  for (const auto& [path, requests] : files) {
    const std::vector<std::uint64_t>& ends = bounds[file++].ends;
    for (const Request& each : requests) {
      const auto region = std::ranges::upper_bound(ends, each.offset) - ends.begin();
      ++counts[window_at(input, each.start_s)][first_region + static_cast<std::size_t>(region)];
    }
    first_region += ends.size();
  }
  std::vector<PlanInput::Window> joined;
  std::size_t begin = 0;
  for (const std::size_t last : joined_windows(counts)) {
    joined.push_back({input.windows[begin].start_s, input.windows[last].end_s, {}});
    begin = last + 1;
  }
  input.windows = std::move(joined);
}

/// Returns the ends of ranges that double, up to the largest file.
RegionBounds doubling_ranges() {
  RegionBounds bounds;
  for (std::uint64_t end = MiB; end < max_bytes / 2; end *= 2) bounds.ends.push_back(end);
  bounds.ends.push_back(max_bytes);
  return bounds;
}

}  // namespace

Result<void> PlanCollector::add(std::string_view path, const Request& request) {
  if (request.length == 0) return {};
  if (request.offset > max_bytes || request.length > max_bytes - request.offset)
    return fail(ErrorKind::bad_input, "'{}': a request of {} bytes at offset {} ends beyond 2^63 - 1", printable(path),
                request.length, request.offset);
  if (!std::isfinite(request.start_s))
    return fail(ErrorKind::bad_input, "'{}': the start of a request is no number", printable(path));
  auto file = files_.find(path);
  if (file == files_.end()) file = files_.emplace(std::string(path), std::vector<Request>{}).first;
  file->second.push_back(request);
  ++requests_;
  return {};
}

Result<PlanInput> PlanCollector::finish(const PlanGranularity& granularity) {
  if (requests_ == 0) return fail(ErrorKind::infeasible, "there is no request to plan for");
  double first_s = std::numeric_limits<double>::infinity(), last_s = -first_s;
  for (auto& [path, requests] : files_) {
    std::ranges::stable_sort(requests, {}, &Request::start_s);
    first_s = std::min(first_s, requests.front().start_s);
    last_s = std::max(last_s, requests.back().start_s);
  }
  PlanInput input;
  input.window_s = granularity.window_s;
  const double windows = std::floor((last_s - first_s) / granularity.window_s) + 1;
  std::vector<RegionBounds> bounds;
  for (const auto& [path, requests] : files_) {
    auto cut = bounds_of(requests, granularity);
    if (!cut) return pass_on(cut.error());
    if (granularity.current != nullptr)
      cut = kept_bounds(*granularity.current, path, *std::move(cut), granularity.region_bytes);
    append_regions(static_cast<std::uint32_t>(input.files.size()), *cut, input.regions);
    input.files.push_back({path, end_of(requests)});
    bounds.push_back(*std::move(cut));
    if (windows * static_cast<double>(input.regions.size()) > static_cast<double>(max_placements))
      return too_many(windows, input.regions.size());
  }
  // Each window ends exactly where the next one begins, whatever the sums are rounded to.
  const auto start_of = [&](std::size_t n) { return first_s + static_cast<double>(n) * granularity.window_s; };
  for (std::size_t n = 0; n < static_cast<std::size_t>(windows); ++n)
    input.windows.push_back({start_of(n), start_of(n + 1), {}});
  if (granularity.joins_windows) join_windows(files_, bounds, input);
  std::uint32_t file = 0;
  for (const auto& [path, requests] : files_) {
    if (auto added = add_regions(requests, bounds[file], file, input.windows); !added) return pass_on(added.error());
    ++file;
  }
  return input;
}

std::vector<std::vector<RegionRequest>> PlanCollector::requests_of(const PlanInput& input) const {
  struct Started {
    double start_s;
    RegionRequest request;
  };
  std::vector<std::vector<Started>> windows(input.windows.size());
  for (std::uint32_t file = 0; file < input.files.size(); ++file) {
    const auto known = files_.find(input.files[file].path);
    if (known == files_.end()) continue;
    const auto begins = std::ranges::lower_bound(input.regions, file, {}, &PlannedRegion::file);
    const auto ends = std::ranges::upper_bound(input.regions, file, {}, &PlannedRegion::file);
    for (const Request& each : known->second) {
      const std::size_t window = window_at(input, each.start_s);
      const auto first = std::ranges::upper_bound(begins, ends, each.offset, {}, &PlannedRegion::offset_bytes) - 1;
      for (auto region = first; region != ends && region->offset_bytes < each.offset + each.length; ++region) {
        const std::uint64_t begin = std::max(each.offset, region->offset_bytes);
        const std::uint64_t end = std::min(each.offset + each.length, region->offset_bytes + region->length_bytes);
        windows[window].push_back({each.start_s,
                                   {each.process, static_cast<std::uint32_t>(&*region - input.regions.data()),
                                    begin - region->offset_bytes, end - begin, each.is_write}});
      }
    }
  }
  std::vector<std::vector<RegionRequest>> made;
  for (auto& window : windows) {
    std::ranges::stable_sort(window, {}, &Started::start_s);
    auto& requests = made.emplace_back();
    requests.reserve(window.size());
    for (const Started& each : window) requests.push_back(each.request);
    window = {};
  }
  return made;
}

Result<PlanInput> plan_input(std::string_view path, const Pattern& pattern, bool is_write,
                             const PlanGranularity& granularity) {
  RegionCollector rough(doubling_ranges());
  if (auto added = rough.add(pattern, is_write); !added) return pass_on(added.error());
  const std::uint64_t bytes = rough.end_bytes();
  if (std::ranges::all_of(rough.regions(), [](const Region& each) { return each.groups.empty(); }))
    return fail(ErrorKind::infeasible, "there is no request to plan for");
  auto bounds = bounds_of(pattern, bytes, is_write, granularity);
  if (!bounds) return pass_on(bounds.error());
  if (granularity.current != nullptr)
    bounds = kept_bounds(*granularity.current, path, *std::move(bounds), granularity.region_bytes);
  if (bounds->ends.size() > max_placements) return too_many(1, bounds->ends.size());
  RegionCollector collector(*bounds);
  if (auto added = collector.add(pattern, is_write); !added) return pass_on(added.error());
  std::vector<Region> regions = collector.regions();
  PlanInput input;
  input.files.push_back({std::string(path), bounds->ends.back()});
  append_regions(0, *bounds, input.regions);
  input.windows.push_back({0, 0, std::move(regions)});
  return input;
}

}  // namespace iosig
