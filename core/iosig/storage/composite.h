// Determines what a mount is stored on: one simple device, or a composite of devices, down to devices that fail as a
// whole.
//
// A reader per kind of composite (composite_readers.h) reports one level. This file assembles the levels, for example
// for a mirror of partitions, a volume over two arrays, or a file system over that volume:
//
//   /dev/mapper/vg-home on dm-0 (linear over md0, md1)   =>   vg-home: stripe of md0, md1
//   md0: raid1 of sda1, sdb1                                  md0: raid1 of sda, sdb
//   md1: raid1 of sdc1, sdd1                                  md1: raid1 of sdc, sdd
//
// A partition fails with its disk; therefore members are disks.
//
// If any level is unknown, the mount has one simple device, as inspect_hardware describes it.
#pragma once

#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/hardware.h"
#include "iosig/storage/machine.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

struct Composed {
  Hardware whole;               ///< a composite has `redundancy`, whose members are named below
  std::vector<Device> members;  ///< all members, recursively, each once; empty for a simple device
};

/// Determines what `mount`, one of `mounts`, is stored on.
///
/// A layer over a single device (a partition, encryption, a volume on one disk) has the redundancy and the members of
/// that device. A disk is a member once, however many of its partitions take part. Two copies on the same disk protect
/// against nothing; then no redundancy is reported, nor for degraded arrays. Network file systems are queried with
/// their own tools, which may take some seconds.
[[nodiscard]] Composed inspect_composition(const Mount& mount, const std::vector<Mount>& mounts,
                                           const Machine& machine = {});

}  // namespace iosig
