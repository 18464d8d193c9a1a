// Finds the places on this machine where this user can store files: mount points, file systems and devices, without
// measuring.
//
// Uses mountinfo, statvfs, sysfs, the tools of composites, and one attempt to create an unnamed file. Leaves nothing
// behind.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// One file system and the device that it is stored on. The device has the assumed speeds of its kind; its provenance
/// marks inspected values.
struct Found {
  MountPoint mount;  ///< `path` is a directory in which this user can create files; free_bytes comes from statvfs
  Device device;
  std::vector<Device> members;  ///< members of a composite `device`, recursively
  std::string remark;           ///< a sentence for the user about the layers below the mount; "": nothing unusual
  bool kind_is_sure = true;     ///< false: ssd or hdd is a conservative guess, to be decided by measurement
};

/// A file system that was inspected and skipped, with the reason for the user.
struct Skipped {
  std::string path, reason;
};

struct Discovery {
  std::vector<Found> found;  ///< by path of the mount
  std::vector<Skipped> skipped;
};

/// Smaller file systems are not destinations.
inline constexpr std::uint64_t smallest_capacity_bytes = 64ull << 20;

/// Finds each file system once (bind mounts are the same file system) if this user can create files on it: in the
/// mount's root or, if that is impossible or inappropriate ("/", "/home"), in the first directory on it of $HOME,
/// $TMPDIR, /var/tmp, /tmp, MOUNT/$USER. Directories of `preferred` take precedence, then those that the job or the
/// session names ($SLURM_TMPDIR, $BBPATH, $DW_JOB_STRIPED, ...: docs/formats/storage.md). Skips a mount that does not
/// respond within a few seconds (a dead server). Fails with `system` if the mounts cannot be read.
[[nodiscard]] Result<Discovery> discover(const std::vector<std::string>& preferred = {});

/// Describes the storage of this machine without measuring, with conservative assumed speeds for each kind of device.
/// Fails as discover() does.
[[nodiscard]] Result<Storage> inspect_storage();

/// Returns the description of `found`; a device that is a member of several composites occurs once.
[[nodiscard]] Storage storage_of(std::vector<Found> found);

}  // namespace iosig
