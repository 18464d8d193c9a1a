// What carries a mount: one simple device, or a composite of others, down to devices that fail as one.
//
// A reader for each kind of composite (composite_readers.h) tells one level of it; here the levels are put together, so
// that a mirror of partitions, a volume over two arrays or a file system over that volume come out as what they are:
//
//   /dev/mapper/vg-home on dm-0 (linear over md0, md1)   =>   vg-home: stripe of md0, md1
//   md0: raid1 of sda1, sdb1                                  md0: raid1 of sda, sdb   (a partition fails with its
//   disk) md1: raid1 of sdc, sdd                                    md1: raid1 of sdc, sdd
//
// What cannot be told is left out: the mount then has one simple device, as inspect_hardware describes it.
#pragma once

#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/hardware.h"
#include "iosig/storage/machine.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

struct Composed {
  Hardware whole;               ///< a composite has `redundancy`, whose members are named below
  std::vector<Device> members;  ///< and theirs, each once; empty for a simple device
};

/// What carries `mount`, one of `mounts`.
///
/// A layer over a single device (a partition, encryption, a volume on one disk) is as redundant as what it lies on, and
/// has its members. A disk is a member once, however many of its partitions take part; where two copies would share a
/// disk they protect nothing, and no redundancy is told. Neither is it for arrays that are degraded. Network file
/// systems ask their own tools, which may take some seconds.
[[nodiscard]] Composed inspect_composition(const Mount& mount, const std::vector<Mount>& mounts,
                                           const Machine& machine = {});

}  // namespace iosig
