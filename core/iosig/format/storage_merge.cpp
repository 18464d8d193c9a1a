// merge_probe: a new probe and the user's file become one description.
#include <algorithm>

#include "iosig/format/storage_fields.h"
#include "iosig/format/storage_toml.h"

namespace iosig {
namespace {

using namespace storage_fields;

template <class Owner>
bool edited_by_hand(const Owner& owner) {
  return std::ranges::any_of(owner.provenance, [](const auto& entry) { return entry.second.origin == Origin::config; });
}

/// Returns `update` with every manual value of `current`; the probe's values remain in the record.
template <class Owner>
Owner with_hand_values(const Owner& current, Owner update, const std::vector<Field<Owner>>& fields) {
  for (const auto& each : fields) {
    const auto kept = current.provenance.find(each.key);
    if (kept == current.provenance.end() || kept->second.origin != Origin::config) continue;
    Provenance provenance;
    if (const auto probed = update.provenance.find(each.key); probed != update.provenance.end()) {
      provenance = probed->second;
      provenance.probed_origin = provenance.origin;
      provenance.probed_text = each.show(update);
      provenance.origin = Origin::config;
    }
    each.copy(update, current);
    update.provenance[std::string(each.key)] = provenance;
  }
  return update;
}

/// As with_hand_values, for the redundancy.
Device with_hand_redundancy(const Device& current, Device update) {
  const auto kept = current.provenance.find(redundancy_key);
  if (!current.redundancy || kept == current.provenance.end() || kept->second.origin != Origin::config) return update;
  Provenance provenance;
  if (update.redundancy) provenance.probed_text = redundancy_text(*update.redundancy);
  provenance.probed_origin = Origin::inspected;
  update.redundancy = current.redundancy;
  update.provenance[std::string(redundancy_key)] = provenance;
  return update;
}

/// Keeps the device `name` of `current` unchanged unless `merged` has one of that name.
void keep_device(const Storage& current, const std::string& name, Storage& merged) {
  const Device* device = current.find_device(name);
  if (device != nullptr && merged.find_device(name) == nullptr) merged.devices.push_back(*device);
}

/// Keeps the mount point and the device of a server, which a probe may not find any more.
void keep_what_it_names(const Storage& current, const Server& server, Storage& merged) {
  if (!server.device.empty()) keep_device(current, server.device, merged);
  const MountPoint* mount = current.find_mount_point(server.mount_point);
  if (mount == nullptr || merged.find_mount_point(mount->path) != nullptr) return;
  merged.mount_points.push_back(*mount);
  keep_device(current, mount->device, merged);
}

}  // namespace

Storage merge_probe(const Storage& current, const Storage& update) {
  Storage merged;
  merged.policy = current.policy;
  for (const MountPoint& mount : update.mount_points) {
    const MountPoint* old = current.find_mount_point(mount.path);
    merged.mount_points.push_back(old == nullptr ? mount : with_hand_values(*old, mount, mount_point_fields()));
  }
  for (const MountPoint& mount : current.mount_points)
    if (merged.find_mount_point(mount.path) == nullptr && edited_by_hand(mount)) merged.mount_points.push_back(mount);
  for (const Device& device : update.devices) {
    const Device* old = current.find_device(device.name);
    merged.devices.push_back(
        old == nullptr ? device : with_hand_redundancy(*old, with_hand_values(*old, device, device_fields())));
  }
  for (const Device& device : current.devices)
    if (edited_by_hand(device)) keep_device(current, device.name, merged);
  merged.servers = current.servers;
  for (const Server& server : current.servers) keep_what_it_names(current, server, merged);
  for (const MountPoint& mount : merged.mount_points) keep_device(current, mount.device, merged);
  for (std::size_t i = 0; i < merged.devices.size(); ++i)  // grows during the loop
    if (const auto redundancy = merged.devices[i].redundancy)
      for (const std::string& member : redundancy->members) keep_device(current, member, merged);
  if (current.network && update.network)
    merged.network = with_hand_values(*current.network, *update.network, network_fields());
  else
    merged.network = update.network ? update.network : current.network;
  return merged;
}

}  // namespace iosig
