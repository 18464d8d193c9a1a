// Parses /proc/self/mountinfo and answers questions from it alone. Pure: text in, data out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iosig {

/// One line of mountinfo (proc(5)), octal escapes undone.
struct Mount {
  int id = 0, parent = 0;
  unsigned major = 0, minor = 0;  ///< of the file system; two mounts of one file system share them
  std::string root;               ///< root of the mount within the file system; "/" unless a bind mount
  std::string path;               ///< mount point
  bool read_only = false;         ///< of the mount or its file system
  std::string filesystem;         ///< type: ext4, fuse.sshfs, ...
  std::string source;             ///< "/dev/vda1", "server:/export", "tmpfs"
  std::string options;            ///< of the file system, as in the line
  std::string upper_directory;    ///< of an overlay; may lie outside this container's view

  [[nodiscard]] bool same_filesystem(const Mount& other) const { return major == other.major && minor == other.minor; }
};

/// Returns mounts in the order of the text, which is not always the order of mounting. Omits malformed lines.
[[nodiscard]] std::vector<Mount> parse_mountinfo(std::string_view text);

/// Returns the mount of the absolute, link-free `path`, or nullptr if none covers it (a chroot below a mount). Resolves
/// as the kernel does: from the root, into the mount on each directory on the path, topmost last.
[[nodiscard]] const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);

/// Returns the value of the option `name` ("tcp" of proto=tcp), "" if it has no value, nothing if it is missing.
[[nodiscard]] std::optional<std::string> option_of(const Mount& mount, std::string_view name);

/// lab/slowdisk, which simulates a disk in memory. Counts as the disk that it simulates.
inline constexpr std::string_view simulated_disk = "fuse.slowdisk";

/// Returns whether a FUSE mount belongs to a user other than root and `user`: that user's program sees and serves its
/// files.
[[nodiscard]] bool is_mounted_by_untrusted_user(const Mount& mount, unsigned user);

/// Returns why `mount` is not a destination for `user`, phrased to follow its path in a sentence; "" if it may be one.
[[nodiscard]] std::string unsuitability(const Mount& mount, unsigned user);

/// Returns the mounts that are possible destinations for `user`: real file systems, tmpfs and network file systems that
/// are visible and writable. Excludes the system's own directories (/proc, /sys, /run, /boot, /dev except /dev/shm)
/// unless one of `wanted` lies on them, and tmpfs of the system (/run, /dev, of cgroups) wherever else they are
/// mounted. One non-empty list per file system with its mounts, best first (whole file systems before bind mounts, then
/// the shortest path). The lists are sorted by their first path.
[[nodiscard]] std::vector<std::vector<Mount>> destinations(const std::vector<Mount>& mounts,
                                                           const std::vector<std::string>& wanted = {},
                                                           unsigned user = 0);

}  // namespace iosig
