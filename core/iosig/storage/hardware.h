// What the hardware says about itself, before anything is measured: the device below a mount, from sysfs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

struct Hardware {
  Device device;             ///< the assumed speeds of its kind; what was inspected has Origin::inspected
  bool kind_is_sure = true;  ///< false: ssd or hdd only as a conservative guess, a measurement should decide
  bool is_volatile = false;  ///< lost with power whatever the file system says (zram, a loop device on tmpfs)
};

/// The device below `mount`, one of `mounts`, as if it were a simple one (storage/composite takes it apart). `sysfs` is
/// "/sys" but in tests.
///
/// Partitions ask their disk. Rotational disks that no SATA or SAS link vouches for are not sure: virtual disks claim
/// to rotate whatever carries them, USB sticks too. A network file system's device is its server.
/// An overlay's is the one that carries its upper directory, if that can be seen from here.
/// Its name is the device's own ("sda1", "vg-home", the server, else the last word of the path): unique per
/// machine for block devices only.
[[nodiscard]] Hardware inspect_hardware(const Mount& mount, const std::vector<Mount>& mounts,
                                        const std::string& sysfs = "/sys");

/// The block device whose directory in sysfs is `directory`; `mounts` tell what a loop device's file lies on.
[[nodiscard]] Hardware inspect_block_device(const std::filesystem::path& directory, const std::vector<Mount>& mounts);

/// The directory in sysfs of the block device that `mount` names, by number or by source; nothing when it has none.
[[nodiscard]] std::optional<std::filesystem::path> block_directory(const Mount& mount, const std::string& sysfs);

/// The mount that `mount`'s files are really put on: another one when it is an overlay and that can be seen from here.
[[nodiscard]] const Mount& carrier_of(const Mount& mount, const std::vector<Mount>& mounts);

/// The text of a file of sysfs without white space at its ends, or nothing; and it as a number.
[[nodiscard]] std::optional<std::string> read_word(const std::filesystem::path& file);
[[nodiscard]] std::optional<std::uint64_t> read_count(const std::filesystem::path& file);

/// Makes a device with the assumed speeds of `kind` of `device`; what was found of the hardware itself stays.
void set_kind(Device& device, DeviceKind kind);

/// Marks `key` as found by a probe in a way that `origin` tells.
void set_origin(Provenances& provenance, std::string_view key, Origin origin);

}  // namespace iosig
