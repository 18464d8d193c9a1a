// What the hardware says about itself, before anything is measured: the device below a mount, from sysfs.
#pragma once

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

/// The device below `mount`, one of `mounts`. `sysfs` is "/sys" but in tests.
///
/// Partitions ask their disk. Rotational disks that no SATA or SAS link vouches for are not sure: virtual disks claim
/// to rotate whatever carries them, USB sticks too. A network file system's device is its server.
/// An overlay's is the one that carries its upper folder, if that can be seen from here.
/// Its name is the device's own ("sda1", "vg-home", the server, else the last word of the path): unique per
/// machine for block devices only.
[[nodiscard]] Hardware inspect_hardware(const Mount& mount, const std::vector<Mount>& mounts,
                                        const std::string& sysfs = "/sys");

/// Marks `key` as found by a probe in a way that `origin` tells.
void set_origin(Provenances& provenance, std::string_view key, Origin origin);

}  // namespace iosig
