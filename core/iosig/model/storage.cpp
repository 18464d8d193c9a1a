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

bool is_volatile_filesystem(std::string_view filesystem) { return filesystem == "tmpfs" || filesystem == "ramfs"; }

bool is_shared_filesystem(std::string_view filesystem) {
  static constexpr std::array<std::string_view, 18> shared{
      "nfs",       "nfs4",       "cifs",           "smb3",     "smbfs", "lustre", "beegfs", "gpfs", "ceph",
      "fuse.ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.mfs", "pvfs2", "ocfs2",  "gfs2",   "afs",  "9p"};
  return std::ranges::find(shared, filesystem) != shared.end();
}

std::optional<std::uint64_t> max_file_bytes_of(std::string_view filesystem) {
  if (filesystem == "ext4") return 16 * TiB;
  if (filesystem == "ext3" || filesystem == "ext2") return 2 * TiB;
  if (filesystem == "vfat" || filesystem == "msdos") return 4 * GiB - 1;
  if (filesystem == "xfs" || filesystem == "btrfs" || filesystem == "tmpfs") return max_bytes;
  return std::nullopt;
}

}  // namespace iosig
