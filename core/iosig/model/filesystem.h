// The traits of file system types. filesystems.inc has a row for each type.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace iosig {

struct FilesystemType {
  std::string_view name;    ///< as in /proc/self/mountinfo
  std::uint32_t magic = 0;  ///< f_type of statfs(2); 0: unknown, or that of every FUSE file system
  struct Traits {
    bool is_shared = false;      ///< every node that mounts it sees the same files
    bool is_volatile = false;    ///< its data are lost on power failure
    bool has_no_device = false;  ///< it stores data although mountinfo gives it no block device (major number 0)
    bool follows_links = false;  ///< always follows symbolic links, unless the mount forbids it
  } is = {};
  std::uint64_t max_file_bytes = 0;  ///< 0: unknown
};

/// Returns the row of a type, or nullptr if it has none.
[[nodiscard]] const FilesystemType* find_filesystem(std::string_view name);
/// Returns the first row with this magic number, or nullptr. Types of one family share a number: ext2, ext3, ext4.
[[nodiscard]] const FilesystemType* find_filesystem(std::uint32_t magic);

/// Returns whether the file system's data are lost on power failure.
[[nodiscard]] bool is_volatile_filesystem(std::string_view name);
/// Returns whether every node that mounts the file system sees the same files.
[[nodiscard]] bool is_shared_filesystem(std::string_view name);
/// Returns the maximum file size of the file system, or nothing if it is unknown.
[[nodiscard]] std::optional<std::uint64_t> max_file_bytes_of(std::string_view name);

}  // namespace iosig
