#include "iosig/config/system_storage.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "iosig/base/text.h"

namespace iosig {
namespace {

std::string normal_path(const std::string& path) {
  return std::string(without_trailing_slashes(std::filesystem::path(path).lexically_normal().native()));
}

/// Copies devices of one description into another.
class Adoption {
 public:
  Adoption(const Storage& from, Storage& to) : from_(from), to_(to) {}

  /// Copies the device and its members, unless an equal one is there. Returns its name in the other description.
  std::string adopt(const std::string& name) {
    if (const auto known = names_.find(name); known != names_.end()) return known->second;
    Device device = *from_.find_device(name);
    if (device.redundancy)
      for (std::string& member : device.redundancy->members) member = adopt(member);
    if (const Device* there = to_.find_device(name); there == nullptr || !(*there == device)) {
      device.name = unused_name(name);
      to_.devices.push_back(device);
    }
    return names_[name] = device.name;
  }

 private:
  [[nodiscard]] std::string unused_name(const std::string& name) const {
    std::string unused = name;
    for (int count = 1; to_.find_device(unused) != nullptr; ++count)
      unused = count == 1 ? fmt::format("{} (system)", name) : fmt::format("{} (system {})", name, count);
    return unused;
  }

  const Storage& from_;
  Storage& to_;
  std::map<std::string, std::string> names_;  ///< by name in `from_`
};

/// Returns the mount point of `system` that `given` lies on; nullptr: none.
const MountPoint* nearest_above(const Storage& system, const std::string& given, const ResolvePath& resolve) {
  const auto resolved = [&](const std::string& path) { return resolve ? resolve(path) : normal_path(path); };
  const std::string path = resolved(given);
  const MountPoint* nearest = nullptr;
  std::size_t longest = 0;
  for (const MountPoint& mount : system.mount_points) {
    const std::string above = resolved(mount.path);
    if (!is_below(path, above) || above.size() <= longest) continue;
    nearest = &mount;
    longest = above.size();
  }
  return nearest;
}

void mark_as_administrators(MountPoint& mount, const char* key) {
  Provenance administrators;
  administrators.origin = Origin::administrator;
  mount.provenance[key] = administrators;
}

}  // namespace

void add_system_mount_points(const Storage& system, Storage& storage) {
  Adoption devices(system, storage);
  for (const MountPoint& mount : system.mount_points) {
    const auto is_same = [path = normal_path(mount.path)](const MountPoint& other) {
      return normal_path(other.path) == path;
    };
    if (std::ranges::any_of(storage.mount_points, is_same)) continue;
    MountPoint added = mount;
    added.device = devices.adopt(mount.device);
    storage.mount_points.push_back(std::move(added));
  }
  if (!storage.policy) storage.policy = system.policy;
  if (!storage.network) storage.network = system.network;
  if (!storage.servers.empty()) return;
  for (Server server : system.servers) {
    if (!server.device.empty()) server.device = devices.adopt(server.device);
    storage.servers.push_back(std::move(server));
  }
}

bool has_limits(const Storage& system) {
  return std::ranges::any_of(system.mount_points,
                             [](const MountPoint& mount) { return mount.forbidden || mount.max_share.has_value(); });
}

bool is_forbidden_by(const Storage& system, const std::string& path, const ResolvePath& resolve) {
  const MountPoint* limits = nearest_above(system, path, resolve);
  return limits != nullptr && limits->forbidden;
}

void apply_limits(const Storage& system, Storage& storage, const ResolvePath& resolve) {
  for (MountPoint& mount : storage.mount_points) {
    const MountPoint* limits = nearest_above(system, mount.path, resolve);
    if (limits == nullptr) continue;
    if (limits->forbidden) {
      mount.forbidden = true;
      mark_as_administrators(mount, "forbidden");
    }
    if (limits->max_share && *limits->max_share <= mount.max_share.value_or(1)) {
      mount.max_share = limits->max_share;
      mark_as_administrators(mount, "max_share");
    }
  }
}

}  // namespace iosig
