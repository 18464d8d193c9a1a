#include "iosig/decide/plan_current.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "iosig/base/text.h"

namespace iosig {
namespace {

std::string words_of(const Servers& servers) {
  std::vector<std::string> words;
  for (const ServerClass& each : servers.classes)
    words.push_back(fmt::format("{} {}", each.count, printable(each.name)));
  return fmt::format("{}", fmt::join(words, ", "));
}

bool are_alike(const Servers& one, const Servers& other) {
  return std::ranges::equal(one.classes, other.classes, [](const ServerClass& a, const ServerClass& b) {
    return a.name == b.name && a.count == b.count;
  });
}

/// The regions of a file in a plan.
std::vector<PlannedRegion> regions_of(const Plan& plan, std::string_view path) {
  std::vector<PlannedRegion> regions;
  for (const PlannedRegion& each : plan.regions)
    if (plan.files[each.file].path == path) regions.push_back(each);
  return regions;
}

/// Adds a file of `current` without requests.
void add_idle_file(const Plan& current, std::uint32_t file, PlanInput& input) {
  const auto number = static_cast<std::uint32_t>(input.files.size());
  input.files.push_back(current.files[file]);
  for (PlannedRegion region : current.regions) {
    if (region.file != file) continue;
    region.file = number;
    input.regions.push_back(region);
    for (PlanInput::Window& window : input.windows)
      window.regions.push_back({number, region.offset_bytes, region.length_bytes, {}});
  }
}

}  // namespace

RegionBounds kept_bounds(const Plan& current, std::string_view path, RegionBounds bounds, std::uint64_t region_bytes) {
  const std::vector<PlannedRegion> regions = regions_of(current, path);
  if (regions.empty()) return bounds;
  RegionBounds kept;
  for (const PlannedRegion& each : regions) kept.ends.push_back(each.offset_bytes + each.length_bytes);
  const std::uint64_t known = kept.ends.back();
  const std::uint64_t bytes = bounds.ends.empty() ? 0 : bounds.ends.back();
  if (bytes > known && regions.back().length_bytes < region_bytes)
    kept.ends.back() = std::min(bytes, regions.back().offset_bytes + region_bytes);
  for (const std::uint64_t end : bounds.ends)
    if (end > kept.ends.back()) kept.ends.push_back(end);
  return kept;
}

Result<void> put_current(const Plan& current, const Servers& servers, PlanInput& input) {
  if (!are_alike(current.servers, servers))
    return fail(ErrorKind::usage, "the current plan is for {}, and the storage description has {}: expected the same",
                words_of(current.servers), words_of(servers));
  for (std::uint32_t file = 0; file < current.files.size(); ++file)
    if (std::ranges::find(input.files, current.files[file].path, &PlannedFile::path) == input.files.end())
      add_idle_file(current, file, input);
  std::map<std::pair<std::string_view, std::uint64_t>, const Stripes*> in_place;
  for (std::size_t n = 0; n < current.regions.size(); ++n)
    in_place[{current.files[current.regions[n].file].path, current.regions[n].offset_bytes}] =
        &current.windows.back().placements[n].stripe_bytes;
  input.current.clear();
  for (const PlannedRegion& each : input.regions) {
    const auto known = in_place.find({input.files[each.file].path, each.offset_bytes});
    input.current.push_back(known == in_place.end() ? Stripes{} : *known->second);
  }
  return {};
}

}  // namespace iosig
