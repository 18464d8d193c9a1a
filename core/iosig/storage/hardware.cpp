#include "iosig/storage/hardware.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

namespace fs = std::filesystem;

std::string transport_of(const fs::path& directory, const std::string& disk) {
  // The bus is a directory on the path to the device; the one nearest to the device counts, so these are ordered by
  // nearness.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> buses{{{"/nvme", "nvme"},
                                                                                        {"/virtio", "virtio"},
                                                                                        {"/vbd-", "xen"},
                                                                                        {"/VMBUS", "hyperv"},
                                                                                        {"/vmbus", "hyperv"},
                                                                                        {"/usb", "usb"},
                                                                                        {"/mmc", "mmc"},
                                                                                        {"/ata", "sata"},
                                                                                        {"/end_device-", "sas"},
                                                                                        {"/ndbus", "pmem"},
                                                                                        {"/host", "scsi"}}};
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> drivers{{{"loop", "loop"},
                                                                                         {"dm-", "device-mapper"},
                                                                                         {"md", "md"},
                                                                                         {"zram", "zram"},
                                                                                         {"ram", "ram"},
                                                                                         {"pmem", "pmem"},
                                                                                         {"nbd", "nbd"}}};
  for (const auto& [prefix, name] : drivers)
    if (disk.starts_with(prefix)) return std::string(name);
  const std::string path = directory.string();
  for (const auto& [part, name] : buses)
    if (path.find(part) != std::string::npos) return std::string(name);
  return {};
}

/// Returns "server" for "server:/export" and "//server/share", "tank" for "tank/home", otherwise the last component of
/// the mount path.
std::string unnumbered_name(const Mount& mount) {
  std::string_view source = mount.source;
  while (source.starts_with('/')) source.remove_prefix(1);
  if (source.starts_with('['))  // an IPv6 address
    source = source.substr(1, source.find(']') - 1);
  else
    source = source.substr(0, source.find_first_of(":/"));
  if (is_shared_filesystem(mount.filesystem) && !source.empty()) return std::string(source);
  if (mount.filesystem == "zfs") return std::string(source);
  const std::string last = fs::path(mount.path).filename().string();
  return last.empty() ? mount.filesystem : last;
}

/// | NFS, SMB | mount options | one device, the server, with its `transport` (tcp, rdma): a client cannot see more |
/// Returns the transport to an NFS or SMB server from the options: "tcp", "udp", "rdma", or "".
std::string network_transport(const Mount& mount) {
  if (auto protocol = option_of(mount, "proto")) return *std::move(protocol);
  return option_of(mount, "rdma") ? "rdma" : "";
}

template <class T>
void inspected(Device& device, T Device::*member, T value, std::string_view key) {
  device.*member = std::move(value);
  set_origin(device.provenance, key, Origin::inspected);
}

}  // namespace

void set_origin(Provenances& provenance, std::string_view key, Origin origin) {
  Provenance& found = provenance[std::string(key)];
  found.origin = found.probed_origin = origin;
}

std::optional<std::string> read_word(const fs::path& file) {
  const auto text = read_file(file.string(), 4096);
  if (!text) return std::nullopt;
  return std::string(trimmed(*text));
}

std::optional<std::uint64_t> read_count(const fs::path& file) {
  const auto word = read_word(file);
  std::uint64_t count = 0;
  if (!word || std::from_chars(word->data(), word->data() + word->size(), count).ec != std::errc{}) return std::nullopt;
  return count;
}

/// btrfs and overlay have anonymous device numbers, but btrfs names one of its devices as its source.
std::optional<fs::path> block_directory(const Mount& mount, const std::string& sysfs) {
  unsigned major = mount.major, minor = mount.minor;
  if (struct stat status{}; major == 0 && mount.source.starts_with("/dev/") &&
                            ::stat(mount.source.c_str(), &status) == 0 && S_ISBLK(status.st_mode)) {
    major = ::major(status.st_rdev);
    minor = ::minor(status.st_rdev);
  }
  if (major == 0) return std::nullopt;
  std::error_code failure;
  fs::path directory = fs::canonical(fmt::format("{}/dev/block/{}:{}", sysfs, major, minor), failure);
  if (failure) return std::nullopt;
  return directory;
}

const Mount& carrier_of(const Mount& mount, const std::vector<Mount>& mounts) {
  std::error_code failure;
  // In a container, the path of the upper directory does not exist.
  if (!mount.upper_directory.starts_with('/') || !fs::is_directory(mount.upper_directory, failure)) return mount;
  const Mount* carrier = mount_of(mounts, mount.upper_directory);
  return carrier != nullptr && carrier->upper_directory.empty() ? *carrier : mount;
}

void set_kind(Device& device, DeviceKind kind) {
  Device assumed = assumed_device(kind);
  assumed.name = std::move(device.name);
  assumed.path = std::move(device.path);
  assumed.transport = std::move(device.transport);
  assumed.capacity_bytes = device.capacity_bytes;
  assumed.rotational = device.rotational;
  assumed.redundancy = std::move(device.redundancy);
  assumed.provenance = std::move(device.provenance);
  device = std::move(assumed);
  set_origin(device.provenance, "kind", Origin::inspected);
}

Hardware inspect_block_device(const fs::path& directory, const std::vector<Mount>& mounts) {
  std::error_code failure;
  const bool is_partition = fs::exists(directory / "partition", failure);
  const fs::path disk = is_partition ? directory.parent_path() : directory;
  const std::string transport = transport_of(directory, disk.filename().string());
  const auto rotational = read_count(disk / "queue" / "rotational");

  Hardware hardware;
  const auto mapped = read_word(directory / "dm" / "name");
  hardware.device.name = mapped ? *mapped : directory.filename().string();
  if (transport == "pmem") {
    set_kind(hardware.device, DeviceKind::nvram);
  } else if (transport == "zram" || transport == "ram") {
    set_kind(hardware.device, DeviceKind::ram);
    hardware.is_volatile = true;
  } else if (rotational == 0u) {
    set_kind(hardware.device, DeviceKind::ssd);
  } else {
    set_kind(hardware.device, DeviceKind::hdd);
    hardware.kind_is_sure = transport == "sata" || transport == "sas";
  }
  if (const auto backing = read_word(directory / "loop" / "backing_file")) {
    const Mount* carrier = mount_of(mounts, *backing);
    hardware.is_volatile = carrier != nullptr && is_volatile_filesystem(carrier->filesystem);
  }

  Device& device = hardware.device;
  inspected(device, &Device::path, mapped ? "/dev/mapper/" + *mapped : "/dev/" + device.name, "path");
  if (!transport.empty()) inspected(device, &Device::transport, transport, "transport");
  if (rotational) inspected(device, &Device::rotational, std::optional(*rotational != 0), "rotational");
  if (const auto sectors = read_count(directory / "size"))  // always in units of 512 bytes
    inspected(device, &Device::capacity_bytes, std::optional(*sectors * 512), "capacity");
  return hardware;
}

Hardware inspect_hardware(const Mount& mount, const std::vector<Mount>& mounts, const std::string& sysfs) {
  if (const Mount& carrier = carrier_of(mount, mounts); &carrier != &mount) {
    Hardware below = inspect_hardware(carrier, mounts, sysfs);
    below.is_volatile |= is_volatile_filesystem(carrier.filesystem);
    return below;
  }
  if (const auto directory = block_directory(mount, sysfs)) return inspect_block_device(*directory, mounts);
  Hardware hardware;
  hardware.device.name = unnumbered_name(mount);
  if (is_volatile_filesystem(mount.filesystem)) {
    set_kind(hardware.device, DeviceKind::ram);
  } else if (is_shared_filesystem(mount.filesystem)) {
    set_kind(hardware.device, DeviceKind::network);
    inspected(hardware.device, &Device::path, mount.source, "path");
    if (auto transport = network_transport(mount); !transport.empty())
      inspected(hardware.device, &Device::transport, std::move(transport), "transport");
  } else {  // overlay, zfs, virtiofs, fuse.*: the device is unknown
    set_kind(hardware.device, DeviceKind::hdd);
    hardware.kind_is_sure = false;
  }
  return hardware;
}

double rounded(double value) {
  if (value == 0) return 0;
  const double digits = 2 - std::floor(std::log10(value));
  const double scale = std::pow(10, std::abs(digits));
  return digits > 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

namespace {

/// As rounded(), in the largest of `units` (descending) that fits, which keeps its text short.
double rounded_in(double value, std::initializer_list<double> units) {
  for (const double unit : units)
    if (value >= unit) return rounded(value / unit) * unit;
  return rounded(value);
}

}  // namespace

double rounded_rate(double bytes_per_s) { return rounded_in(bytes_per_s, {1.0 * GiB, 1.0 * MiB, 1.0 * KiB}); }
double rounded_seconds(double seconds) { return rounded_in(seconds, {1.0, 1e-3, 1e-6, 1e-9}); }

}  // namespace iosig
