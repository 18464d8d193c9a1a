#include "iosig/regions/planned.h"

#include <fmt/format.h>

namespace iosig::regions {

std::vector<MappedPlacement> placements_of(const Plan& plan) {
  std::vector<MappedClass> classes;
  for (std::size_t n = 0; n < plan.server_names.size(); ++n)
    classes.push_back({plan.servers.classes[n].name, plan.server_names[n]});
  std::vector<MappedPlacement> made;
  for (const PlannedFile& file : plan.files)
    made.push_back({{plan.application, plan.servers.processes, file.path},
                    classes,
                    std::vector<MappedWindow>(plan.windows.size())});
  std::vector<std::uint32_t> since(plan.regions.size());  // the window in which each got its layout
  for (std::uint32_t window = 0; window < plan.windows.size(); ++window)
    for (std::uint32_t n = 0; n < plan.regions.size(); ++n) {
      const PlannedRegion& region = plan.regions[n];
      const Stripes& stripes = plan.windows[window].placements[n].stripe_bytes;
      if (window > 0 && plan.windows[window - 1].placements[n].stripe_bytes != stripes) since[n] = window;
      made[region.file].windows[window].push_back({region.number, region.offset_bytes, region.length_bytes, stripes,
                                                   fmt::format("r{}-w{}", region.number, since[n])});
    }
  return made;
}

}  // namespace iosig::regions
