#include "iosig/model/plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "iosig/base/units.h"

namespace iosig {
namespace {

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

template <class... Args>
Result<void> wrong(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorKind::bad_input, text, std::forward<Args>(args)...);
}

/// Returns what is impossible about the stripes, or "".
std::string stripes_fault(const Plan& plan, const Stripes& stripes) {
  const auto& classes = plan.servers.classes;
  if (stripes.size() != classes.size())
    return fmt::format("{} stripe sizes for {} classes of servers", stripes.size(), classes.size());
  __uint128_t period = 0;  // below 2^64 * max_servers
  for (std::size_t n = 0; n < classes.size(); ++n) period += static_cast<__uint128_t>(stripes[n]) * classes[n].count;
  if (period > max_bytes) return "stripes on all servers of more than 2^63 - 1 bytes together";
  return period > 0 ? "" : "no stripe on any server";
}

Result<void> check_servers(const Plan& plan) {
  if (auto sound = checked(plan.servers); !sound) return sound;
  const auto& classes = plan.servers.classes;
  if (plan.server_names.size() != classes.size())
    return wrong("names for {} classes of servers, and there are {}", plan.server_names.size(), classes.size());
  for (std::size_t n = 0; n < classes.size(); ++n)
    if (plan.server_names[n].size() != classes[n].count)
      return wrong("class {}: {} names for {} servers", n, plan.server_names[n].size(), classes[n].count);
  if (plan.home >= classes.size()) return wrong("home: there is no class {}", plan.home);
  return {};
}

Result<void> check_regions(const Plan& plan) {
  const PlannedRegion* before = nullptr;
  for (std::size_t n = 0; n < plan.regions.size(); ++n) {
    const PlannedRegion& each = plan.regions[n];
    if (each.file >= plan.files.size()) return wrong("region {}: there is no file {}", n, each.file);
    if (each.length_bytes == 0 || each.offset_bytes > max_bytes || each.length_bytes > max_bytes - each.offset_bytes)
      return wrong("region {}: is empty or ends beyond 2^63 - 1 bytes", n);
    const bool follows = before != nullptr && before->file == each.file;
    if (before != nullptr && (each.file < before->file || (follows && each.number <= before->number)))
      return wrong("region {}: expected regions by file and number", n);
    if (follows && each.offset_bytes < before->offset_bytes + before->length_bytes)
      return wrong("region {}: begins inside the one before it", n);
    before = &each;
  }
  return {};
}

Result<void> check_window(const Plan& plan, std::size_t number) {
  const PlannedWindow& window = plan.windows[number];
  if (!std::isfinite(window.start_s) || !std::isfinite(window.end_s) || window.end_s < window.start_s)
    return wrong("window {}: ends before it begins", number);
  if (number > 0 && window.start_s < plan.windows[number - 1].end_s)
    return wrong("window {}: begins inside the one before it", number);
  if (!is_time(window.seconds) || !is_time(window.home_s) || !is_time(window.move_s))
    return wrong("window {}: a time is negative or no number", number);
  if (window.placements.size() != plan.regions.size())
    return wrong("window {}: {} placements for {} regions", number, window.placements.size(), plan.regions.size());
  for (std::size_t n = 0; n < window.placements.size(); ++n) {
    const RegionPlacement& each = window.placements[n];
    if (!is_time(each.seconds) || !is_time(each.home_s))
      return wrong("window {}: region {}: a time is negative or no number", number, n);
    if (const std::string fault = stripes_fault(plan, each.stripe_bytes); !fault.empty())
      return wrong("window {}: region {}: {}", number, n, fault);
  }
  for (const PlannedMove& move : window.moves) {
    if (move.region >= plan.regions.size())
      return wrong("window {}: moves region {}, which does not exist", number, move.region);
    for (const Stripes* stripes : {&move.from, &move.to})
      if (const std::string fault = stripes_fault(plan, *stripes); !fault.empty())
        return wrong("window {}: move of region {}: {}", number, move.region, fault);
  }
  return {};
}

}  // namespace

Result<void> checked(const Plan& plan) {
  if (auto sound = check_servers(plan); !sound) return sound;
  if (!is_time(plan.window_s)) return wrong("the length of the windows is negative or no number");
  for (std::size_t n = 0; n < plan.files.size(); ++n)
    if (plan.files[n].bytes > max_bytes) return wrong("file {}: is larger than 2^63 - 1 bytes", n);
  std::set<std::string_view> paths;
  for (std::size_t n = 0; n < plan.files.size(); ++n)
    if (!paths.insert(plan.files[n].path).second) return wrong("file {}: has the path of an earlier one", n);
  if (plan.regions.empty()) return wrong("there is no region");
  if (auto sound = check_regions(plan); !sound) return sound;
  if (plan.windows.empty()) return wrong("there is no window");
  for (std::size_t n = 0; n < plan.windows.size(); ++n)
    if (auto sound = check_window(plan, n); !sound) return sound;
  return {};
}

std::uint64_t requests_of(const PlannedWindow& window) {
  std::uint64_t requests = 0;
  for (const RegionPlacement& each : window.placements) requests += each.requests;
  return requests;
}

}  // namespace iosig
