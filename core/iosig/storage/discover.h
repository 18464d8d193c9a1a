// Finds where this user can put files on this machine: mount points, file systems and devices, without measuring.
//
// From mountinfo, statvfs, sysfs, the tools of composites, and one attempt to create a file without a name. Leaves
// nothing behind.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// One file system and what carries it. The device has the assumed speeds of its kind; what was inspected says so in
/// its provenance.
struct Found {
  MountPoint mount;  ///< `path` is a directory in which this user can create files; free_bytes is statvfs's answer
  Device device;
  std::vector<Device> members;  ///< that a composite `device` names, and theirs
  std::string remark;           ///< a sentence for the user on what lies beneath the mount; "": nothing unusual
  bool kind_is_sure = true;     ///< false: ssd or hdd is a conservative guess that a measurement should decide
};

/// A file system that was looked at and left out, with the reason for the user.
struct Skipped {
  std::string path, reason;
};

struct Discovery {
  std::vector<Found> found;  ///< by path of the mount
  std::vector<Skipped> skipped;
};

/// Smaller file systems are no destination.
inline constexpr std::uint64_t smallest_capacity_bytes = 64ull << 20;

/// Each file system once (bind mounts are the same file system), where this user can create files: in the mount's root,
/// or, where that is not possible or not decent ("/", "/home"), in the first directory on it of $HOME, $TMPDIR,
/// /var/tmp, /tmp, MOUNT/$USER. One of `preferred`, if on it, comes before all of those, then one that the job or the
/// session names ($SLURM_TMPDIR, $BBPATH, $DW_JOB_STRIPED, ...: docs/formats/storage.md). A mount that does not answer
/// within a few seconds (a dead server) is skipped. Fails with `system` when the machine does not tell its mounts.
[[nodiscard]] Result<Discovery> discover(const std::vector<std::string>& preferred = {});

/// The storage of this machine without any measurement: conservative assumed speeds of each kind of device.
/// Fails as discover() does.
[[nodiscard]] Result<Storage> inspect_storage();

/// What `found` amounts to; a device that is a member of several composites is there once.
[[nodiscard]] Storage storage_of(std::vector<Found> found);

}  // namespace iosig
