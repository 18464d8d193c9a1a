// /proc/self/mountinfo as data, and the questions that can be answered from it alone. Pure: text in, data out.
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
  std::string root;             ///< the directory (or file) of the file system that is mounted; "/" unless a bind mount
  std::string path;             ///< where it is mounted
  bool read_only = false;       ///< the mount or its file system
  std::string filesystem;       ///< type: ext4, fuse.sshfs, ...
  std::string source;           ///< "/dev/vda1", "server:/export", "tmpfs"
  std::string options;          ///< of the file system, as they stand in the line
  std::string upper_directory;  ///< where an overlay puts its files; may lie outside this container's view

  [[nodiscard]] bool same_filesystem(const Mount& other) const { return major == other.major && minor == other.minor; }
};

/// In the order of the text, which is not always the order of mounting. Lines of another form are left out.
[[nodiscard]] std::vector<Mount> parse_mountinfo(std::string_view text);

/// The mount that the absolute, link-free `path` lies on, or nullptr when none covers it (a chroot below a mount).
/// Walks as the kernel does: from the root, into what is mounted on each directory on the way, topmost last.
[[nodiscard]] const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);

/// The value of the file system's option `name` ("tcp" of proto=tcp), "" for one without a value, nothing without it.
[[nodiscard]] std::optional<std::string> option_of(const Mount& mount, std::string_view name);

/// lab/slowdisk, which plays a disk from memory: it counts as what it plays.
inline constexpr std::string_view simulated_disk = "fuse.slowdisk";

/// Whether a FUSE mount belongs to another user than root and `user`: that user's program sees and serves its files.
[[nodiscard]] bool is_of_stranger(const Mount& mount, unsigned user);

/// Why `mount` is no destination for `user`, to follow its path in a sentence; "" when it may be one.
[[nodiscard]] std::string unsuitability(const Mount& mount, unsigned user);

/// The mounts that make sense as destinations: real file systems, tmpfs and network file systems that are visible and
/// not read-only, outside the system's own directories (/proc, /sys, /run, /boot, /dev but /dev/shm), unless one of
/// `wanted` lies on them, and suitable for `user`. A tmpfs of the system's (/run, /dev, that of the cgroups) is none
/// wherever else it is mounted. One inner list for each file system, never empty: where it is mounted, best first (the
/// whole before a bind mount, then the shortest path). Those lists are in order of their first path.
[[nodiscard]] std::vector<std::vector<Mount>> destinations(const std::vector<Mount>& mounts,
                                                           const std::vector<std::string>& wanted = {},
                                                           unsigned user = 0);

}  // namespace iosig
