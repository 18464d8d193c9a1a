#include "iosig/regions/planned.h"

#include <fmt/format.h>

#include <algorithm>

#include "iosig/base/text.h"
#include "iosig/regions/region_rows.h"

namespace iosig::regions {
namespace {

std::vector<MappedClass> classes_of(const Plan& plan) {
  std::vector<MappedClass> classes;
  for (std::size_t n = 0; n < plan.server_names.size(); ++n)
    classes.push_back({plan.servers.classes[n].name, plan.server_names[n]});
  return classes;
}

MapKey key_of(const Plan& plan, const std::string& file) { return {plan.application, plan.servers.processes, file}; }

/// Returns what the last window says of a region, or nothing.
const MappedRegion* last_of(const MappedPlacement& placement, std::uint32_t region) {
  if (placement.windows.empty()) return nullptr;
  const MappedWindow& last = placement.windows.back();
  const auto found = std::ranges::lower_bound(last, region, {}, &MappedRegion::number);
  return found == last.end() || found->number != region ? nullptr : &*found;
}

/// Adds the windows of the plan to `placements`: one for each file of the plan, all with as many windows.
void add_windows(const Plan& plan, std::vector<MappedPlacement>& placements) {
  struct Layout {
    Stripes stripes;
    std::string target;
  };
  std::vector<Layout> layouts(plan.regions.size());  // before the window
  for (std::size_t n = 0; n < layouts.size(); ++n)
    if (const auto* last = last_of(placements[plan.regions[n].file], plan.regions[n].number); last != nullptr)
      layouts[n] = {last->stripe_bytes, last->target};
  for (const PlannedWindow& window : plan.windows) {
    for (MappedPlacement& placement : placements) placement.windows.emplace_back();
    for (std::size_t n = 0; n < layouts.size(); ++n) {
      const PlannedRegion& region = plan.regions[n];
      auto& windows = placements[region.file].windows;
      const Stripes& stripes = window.placements[n].stripe_bytes;
      if (layouts[n].stripes != stripes)
        layouts[n] = {stripes, fmt::format("r{}-w{}", region.number, windows.size() - 1)};
      windows.back().push_back({region.number, region.offset_bytes, region.length_bytes, stripes, layouts[n].target});
    }
  }
}

/// Fails unless the last window of a stored placement is that of `current` for its file.
Result<void> check_last(const MappedPlacement& stored, const Plan& current, std::uint32_t file) {
  std::size_t regions = 0;
  for (std::size_t n = 0; n < current.regions.size(); ++n) {
    const PlannedRegion& region = current.regions[n];
    if (region.file != file) continue;
    ++regions;
    const MappedRegion* const last = last_of(stored, region.number);
    if (last == nullptr || last->offset_bytes != region.offset_bytes || last->length_bytes != region.length_bytes ||
        last->stripe_bytes != current.windows.back().placements[n].stripe_bytes)
      return fail(ErrorKind::bad_input,
                  "{}: window {}, the last one, has another place for region {} than the current plan; expected the "
                  "map that was written with that plan and has not changed since",
                  about(stored.key), stored.windows.size() - 1, region.number);
  }
  if (regions == stored.windows.back().size() && stored.classes == classes_of(current)) return {};
  return fail(ErrorKind::bad_input, "{}: has other regions or servers than the current plan", about(stored.key));
}

/// Returns the placements of the files of `current`, all with as many windows.
Result<std::vector<MappedPlacement>> checked(const Plan& current, std::span<const MappedPlacement> stored) {
  std::vector<MappedPlacement> found;
  for (std::uint32_t file = 0; file < current.files.size(); ++file) {
    const MapKey key = key_of(current, current.files[file].path);
    const auto placement = std::ranges::find(stored, key, &MappedPlacement::key);
    if (placement == stored.end())
      return fail(ErrorKind::infeasible,
                  "has no placement for {}; write that of the current plan first, with 'iosig plan --show PLAN --map'",
                  about(key));
    if (const auto same = check_last(*placement, current, file); !same) return pass_on(same.error());
    if (!found.empty() && found.front().windows.size() != placement->windows.size())
      return fail(ErrorKind::bad_input, "{}: has {} windows, and '{}' has {}; expected as many", about(key),
                  placement->windows.size(), printable(found.front().key.file), found.front().windows.size());
    found.push_back(*placement);
  }
  return found;
}

}  // namespace

std::vector<MappedPlacement> placements_of(const Plan& plan) {
  std::vector<MappedPlacement> made;
  for (const PlannedFile& file : plan.files) made.push_back({key_of(plan, file.path), classes_of(plan), {}});
  add_windows(plan, made);
  return made;
}

Result<std::vector<MappedPlacement>> continued_placements(const Plan& plan, const Plan& current,
                                                          std::span<const MappedPlacement> stored) {
  const auto whose = [](const Plan& each) {
    return fmt::format("'{}' with {} process{}", printable(each.application), each.servers.processes,
                       each.servers.processes == 1 ? "" : "es");
  };
  if (plan.application != current.application || plan.servers.processes != current.servers.processes)
    return fail(ErrorKind::infeasible, "this plan is for {}, and the current one for {}; expected the same",
                whose(plan), whose(current));
  auto earlier = checked(current, stored);
  if (!earlier) return earlier;
  const std::size_t windows = earlier->empty() ? 0 : earlier->front().windows.size();
  std::vector<MappedPlacement> made;
  for (const PlannedFile& file : plan.files) {
    const MapKey key = key_of(plan, file.path);
    const auto known = std::ranges::find(*earlier, key, &MappedPlacement::key);
    if (known == earlier->end() && std::ranges::find(stored, key, &MappedPlacement::key) != stored.end())
      return fail(
          ErrorKind::bad_input,
          "has a placement for {}, of which the current plan knows nothing: it would be lost; expected a current "
          "plan that has this file, or another map",
          about(key));
    made.push_back(known != earlier->end()
                       ? std::move(*known)
                       : MappedPlacement{key, classes_of(plan), std::vector<MappedWindow>(windows)});
  }
  add_windows(plan, made);
  return made;
}

}  // namespace iosig::regions
