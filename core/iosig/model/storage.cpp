#include "iosig/model/storage.h"

#include <algorithm>
#include <array>

#include "iosig/base/units.h"

namespace iosig {

const Device* Storage::find_device(std::string_view name) const {
  const auto it = std::ranges::find(devices, name, &Device::name);
  return it == devices.end() ? nullptr : &*it;
}

const MountPoint* Storage::find_mount_point(std::string_view path) const {
  const auto it = std::ranges::find(mount_points, path, &MountPoint::path);
  return it == mount_points.end() ? nullptr : &*it;
}

const Server* Storage::find_server(std::string_view name) const {
  const auto it = std::ranges::find(servers, name, &Server::name);
  return it == servers.end() ? nullptr : &*it;
}

const Device* Storage::device_of(const Server& server) const {
  if (!server.device.empty()) return find_device(server.device);
  const MountPoint* mount = server.mount_point.empty() ? nullptr : find_mount_point(server.mount_point);
  return mount == nullptr ? nullptr : find_device(mount->device);
}

Result<Code> code_of(const Redundancy& redundancy) {
  const bool is_lrc = redundancy.scheme == RedundancyScheme::lrc;
  if (!is_lrc && redundancy.local_groups != 0)
    return fail(ErrorKind::bad_input, "local_groups is a key of scheme = \"lrc\" only");
  const std::size_t members = redundancy.members.size();
  const std::uint64_t said = std::uint64_t{redundancy.data} + redundancy.local_groups + redundancy.parity;
  const std::uint64_t count = members == 0 ? said : members;
  if (members != 0 && redundancy.parity >= members)
    return fail(ErrorKind::bad_input, "parity is {} but there are {} members; expected fewer parities than members",
                redundancy.parity, members);
  if (members != 0 && redundancy.data != 0 && (redundancy.parity != 0 || is_lrc) && said != members)
    return fail(ErrorKind::bad_input, "data + {}parity is {} but there are {} members; expected as many members",
                is_lrc ? "local_groups + " : "", said, members);
  const auto devices = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
  const auto level = [&](std::string_view name, std::uint32_t least, std::uint32_t parity) -> Result<Code> {
    if (devices < least)
      return fail(ErrorKind::bad_input, "{} needs at least {} members, there are {}", name, least, devices);
    if (redundancy.parity != 0 && redundancy.parity != parity)
      return fail(ErrorKind::bad_input, "{} over {} members has parity {}, not {}", name, devices, parity,
                  redundancy.parity);
    return Code{devices - parity, parity, 1};
  };
  switch (redundancy.scheme) {
    case RedundancyScheme::stripe: return level("a stripe", 1, 0);
    case RedundancyScheme::replica: return level("replica", 2, devices - 1);
    case RedundancyScheme::raid1: return level("raid1", 2, devices - 1);
    case RedundancyScheme::raid5: return level("raid5", 3, 1);
    case RedundancyScheme::raid6: return level("raid6", 4, 2);
    case RedundancyScheme::raid10:
      if (devices < 4 || devices % 2 != 0)
        return fail(ErrorKind::bad_input, "raid10 needs an even number of at least 4 members, there are {}", devices);
      return Code{1, 1, devices / 2};
    case RedundancyScheme::mds:
      if (redundancy.data == 0 || redundancy.parity == 0)
        return fail(ErrorKind::bad_input, "mds needs data and parity of at least 1 each, e.g. data = 4, parity = 2");
      return Code{redundancy.data, redundancy.parity, 1};
    case RedundancyScheme::lrc:
      if (redundancy.data == 0 || redundancy.local_groups == 0)
        return fail(ErrorKind::bad_input,
                    "lrc needs data and local_groups of at least 1 each, e.g. data = 12, "
                    "local_groups = 2, parity = 2");
      if (redundancy.data % redundancy.local_groups != 0)
        return fail(ErrorKind::bad_input, "data is {} but there are {} local_groups; expected equal groups",
                    redundancy.data, redundancy.local_groups);
      return Code{redundancy.data, redundancy.parity, 1, redundancy.local_groups};
  }
  return fail(ErrorKind::bad_input, "unknown redundancy scheme");
}

bool is_free_space_set(const MountPoint& mount) {
  const auto known = mount.provenance.find("free");
  return known != mount.provenance.end() && known->second.origin == Origin::config;
}

std::uint64_t allowed_bytes(const MountPoint& mount) {
  const std::uint64_t free = mount.free_bytes.value_or(0);
  return free - std::min(free, mount.withheld_bytes);
}

Device assumed_device(DeviceKind kind) {
  Device device;
  device.kind = kind;
  device.sector_bits = 4096;  // 512-byte sectors
  device.mttr_s = 86400;      // one day, as in the paper's section 7.4
  const auto speeds = [&](double mib_per_s, double latency_s, double seek_s, double iops) {
    device.read_bytes_per_s = device.write_bytes_per_s = mib_per_s * static_cast<double>(MiB);
    device.operation_latency_s = latency_s;
    device.seek_latency_s = seek_s;
    device.max_iops = iops;
  };
  switch (kind) {
    case DeviceKind::ram: speeds(2000, 5e-6, 0, 200000); break;
    case DeviceKind::nvram: speeds(1000, 1e-4, 0, 9000); break;
    case DeviceKind::ssd: speeds(250, 1e-3, 0, 5000); break;
    case DeviceKind::hdd: speeds(100, 1e-2, 1e-2, 100); break;
    case DeviceKind::network: speeds(80, 2e-3, 0, 500); break;
    case DeviceKind::composite: speeds(100, 1e-2, 0, 100); break;
  }
  return device;
}

}  // namespace iosig
