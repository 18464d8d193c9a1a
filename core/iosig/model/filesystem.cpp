#include "iosig/model/filesystem.h"

#include <linux/magic.h>

#include <algorithm>
#include <array>

#include "iosig/base/units.h"

namespace iosig {
namespace {

using Traits = FilesystemType::Traits;

constexpr Traits local{.follows_links = true};
constexpr Traits pooled{.has_no_device = true, .follows_links = true};  ///< over devices of its own choice
constexpr Traits memory{.is_volatile = true, .follows_links = true};
constexpr Traits unnumbered{.has_no_device = true};
constexpr Traits shared{.is_shared = true};

// A magic number without a name in linux/magic.h is from the file system's own headers.
constexpr std::array filesystems{
    FilesystemType{"ext4", EXT4_SUPER_MAGIC, local, 16 * TiB},
    FilesystemType{"ext3", EXT3_SUPER_MAGIC, local, 2 * TiB},
    FilesystemType{"ext2", EXT2_SUPER_MAGIC, local, 2 * TiB},
    FilesystemType{"xfs", XFS_SUPER_MAGIC, local, max_bytes},
    FilesystemType{"f2fs", F2FS_SUPER_MAGIC, local},
    FilesystemType{"vfat", MSDOS_SUPER_MAGIC, {}, 4 * GiB - 1},
    FilesystemType{"msdos", MSDOS_SUPER_MAGIC, {}, 4 * GiB - 1},
    FilesystemType{"btrfs", BTRFS_SUPER_MAGIC, pooled, max_bytes},
    FilesystemType{"bcachefs", 0, pooled},
    FilesystemType{"overlay", OVERLAYFS_SUPER_MAGIC, pooled},
    FilesystemType{"tmpfs", TMPFS_MAGIC, memory, max_bytes},
    FilesystemType{"ramfs", RAMFS_MAGIC, memory},
    FilesystemType{"zfs", 0x2fc12fc1, unnumbered},
    FilesystemType{"ubifs", 0, unnumbered},
    FilesystemType{"aufs", 0, unnumbered},
    FilesystemType{"virtiofs", 0, unnumbered},
    FilesystemType{"vboxsf", 0, unnumbered},
    FilesystemType{"fuse", 0, unnumbered},
    FilesystemType{"nfs", NFS_SUPER_MAGIC, shared},
    FilesystemType{"nfs4", NFS_SUPER_MAGIC, shared},
    FilesystemType{"cifs", CIFS_SUPER_MAGIC, shared},
    FilesystemType{"smb3", SMB2_SUPER_MAGIC, shared},
    FilesystemType{"smbfs", SMB_SUPER_MAGIC, shared},
    FilesystemType{"lustre", 0x0BD00BD0, shared},
    FilesystemType{"beegfs", 0x19830326, shared},
    FilesystemType{"gpfs", 0x47504653, shared},
    FilesystemType{"pvfs2", 0x20030528, shared},
    FilesystemType{"ceph", CEPH_SUPER_MAGIC, shared},
    FilesystemType{"fuse.ceph", 0, shared},
    FilesystemType{"fuse.ceph-fuse", 0, shared},
    FilesystemType{"fuse.glusterfs", 0, shared},
    FilesystemType{"fuse.mfs", 0, shared},
    FilesystemType{"fuse.sshfs", 0, shared},
    FilesystemType{"dvs", 0, shared},
    FilesystemType{"afs", AFS_SUPER_MAGIC, shared},
    FilesystemType{"ocfs2", OCFS2_SUPER_MAGIC, shared},
    FilesystemType{"gfs2", 0x01161970, shared},
    FilesystemType{"9p", V9FS_MAGIC, shared},
};

template <class Value>
const FilesystemType* find(Value value, Value FilesystemType::*member) {
  const auto* const found = std::ranges::find(filesystems, value, member);
  return found == filesystems.end() ? nullptr : found;
}

}  // namespace

const FilesystemType* find_filesystem(std::string_view name) { return find(name, &FilesystemType::name); }

const FilesystemType* find_filesystem(std::uint32_t magic) {
  return magic == 0 ? nullptr : find(magic, &FilesystemType::magic);
}

bool is_volatile_filesystem(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  return type != nullptr && type->is.is_volatile;
}

bool is_shared_filesystem(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  return type != nullptr && type->is.is_shared;
}

std::optional<std::uint64_t> max_file_bytes_of(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  if (type == nullptr || type->max_file_bytes == 0) return std::nullopt;
  return type->max_file_bytes;
}

}  // namespace iosig
