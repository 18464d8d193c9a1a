#include "iosig/observe/device_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "iosig/base/text.h"
#include "iosig/observe/system_files.h"

namespace iosig::observe {
namespace {

/// Adds the devices whose power is that of `device`. Returns why it is unknown; empty: it is not.
std::string add_powered(const Storage& storage, const Device& device, std::set<std::size_t>& powered) {
  if (device.idle_power_w && device.active_power_w) {
    powered.insert(static_cast<std::size_t>(&device - storage.devices.data()));
    return {};
  }
  const bool has_own = device.idle_power_w || device.active_power_w;
  if (has_own || !device.redundancy || device.redundancy->members.empty())
    return fmt::format("device '{}' has no {}", printable(device.name),
                       device.active_power_w ? "idle_power"
                       : device.idle_power_w ? "active_power"
                                             : "idle_power and active_power");
  for (const std::string& name : device.redundancy->members)
    if (std::string unknown = add_powered(storage, *storage.find_device(name), powered); !unknown.empty())
      return unknown;
  return {};
}

}  // namespace

DevicePowers::DevicePowers(const Storage& storage) {
  no_file_.unknown = "no file is known";
  not_described_.unknown = "the file is on no mount point of the description";
  std::vector<std::set<std::size_t>> powered;          // of each mount point
  std::map<std::size_t, std::set<std::size_t>> users;  // of each device: mount points
  for (const MountPoint& mount : storage.mount_points) {
    powered.emplace_back();
    mounts_.push_back({mount.path, {}});
    mounts_.back().place.unknown = add_powered(storage, *storage.find_device(mount.device), powered.back());
    if (mounts_.back().place.unknown.empty())
      for (const std::size_t device : powered.back()) users[device].insert(mounts_.size() - 1);
  }
  std::map<std::set<std::size_t>, std::uint32_t> unit_of;  // by the mount points that use it
  for (const auto& [number, mounts] : users) {
    const auto [known, is_new] = unit_of.try_emplace(mounts, static_cast<std::uint32_t>(units_.size()));
    if (is_new) units_.emplace_back();
    PowerUnit& unit = units_[known->second];
    const Device& device = storage.devices[number];
    unit.devices.push_back(device.name);
    unit.idle_power_w += device.idle_power_w.value_or(0);
    unit.active_power_w += device.active_power_w.value_or(0);
    for (const std::size_t mount : mounts) {
      unit.is_global |= storage.mount_points[mount].visibility == Visibility::global;
      if (!is_new) continue;
      mounts_[mount].place.units.push_back(known->second);
    }
  }
  for (Mount& mount : mounts_)
    for (const std::uint32_t unit : mount.place.units) mount.place.active_power_w += units_[unit].active_power_w;
  std::ranges::stable_sort(mounts_, std::greater(), [](const Mount& mount) { return mount.path.size(); });
}

const DevicePlace& DevicePowers::place_of(std::string_view path) const {
  if (path.empty()) return no_file_;
  const auto above = std::ranges::find_if(mounts_, [&](const Mount& mount) { return is_below(path, mount.path); });
  if (above == mounts_.end() || (is_of_system(path) && !is_of_system(above->path))) return not_described_;
  return above->place;
}

}  // namespace iosig::observe
