// The readers of composites. Each reports one level of one kind, or nothing if it is of another kind or in doubt. The
// readers of block devices are then asked in turn, so each must recognise its own kind by something that no other has
// (md/, dm/, bcache/ in sysfs). Used by storage/composite, and individually by tests.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/machine.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

/// What a composite is made of, as reported by one reader: a tree whose leaves may be composites for another reader.
struct Part {
  enum class Kind {
    block,      ///< a block device of this machine, by kernel name: "sda1", "dm-3"
    elsewhere,  ///< a device of a server, which cannot be inspected from here
    composite,  ///< of `parts`
  } kind = Kind::block;
  std::string name = {};  ///< of a composite: its own name, or "" to use that of the device above
  std::string path = {};  ///< of a non-block device: its place, as in the description
  // composite
  RedundancyScheme scheme = RedundancyScheme::stripe;
  std::uint32_t data = 0, parity = 0;  ///< as in Redundancy; without parts, the code of devices that are not known
  std::vector<Part> parts = {};

  bool operator==(const Part&) const = default;
};

[[nodiscard]] Part block_part(std::string name);
[[nodiscard]] Part part_elsewhere(std::string name);
/// Returns `scheme` over `parts`; data and parity follow from their number.
[[nodiscard]] Part composite_part(RedundancyScheme scheme, std::vector<Part> parts);
/// Returns the composite that loses data if more than `losses` of `parts`, any of them, fail: a stripe, mirrors
/// (replicas elsewhere) or an MDS code. Returns nothing if `losses` covers all parts, which is impossible.
[[nodiscard]] std::optional<Part> tolerant_part(std::uint32_t losses, std::vector<Part> parts);
/// Returns a code over devices that are not known individually; nothing for one without parity or data.
[[nodiscard]] std::optional<Part> unnamed_part(RedundancyScheme scheme, std::uint32_t data, std::uint32_t parity);
/// Returns a stripe of groups of `each` consecutive `parts`; each group survives `losses` of its own.
[[nodiscard]] std::optional<Part> striped_groups(std::uint32_t losses, std::size_t each, std::vector<Part> parts);

/// Returns the output of a tool that prints lines; nothing if it failed or its last line is truncated. Names that go to
/// a tool must not be options.
[[nodiscard]] std::optional<std::string> ask(const Machine& machine, const Command& command);

// These take the sysfs directory of a whole block device (composite_block.cpp).
/// Reads md from its directory `md/`: linear and levels 0, 1, 4, 5, 6, 10.
[[nodiscard]] std::optional<Part> read_md(const std::filesystem::path& directory, const Machine& machine);
/// Reads device-mapper from `dmsetup table` (root only): LVM, encryption, caches; otherwise single devices from
/// `slaves/`.
[[nodiscard]] std::optional<Part> read_device_mapper(const std::filesystem::path& directory, const Machine& machine);
/// Reads bcache: its backing device; also the cache if it holds data of its own (writeback).
[[nodiscard]] std::optional<Part> read_bcache(const std::filesystem::path& directory, const Machine& machine);

// These take a mount of that file system (composite_filesystem.cpp).
/// Reads btrfs from sysfs: the losses that both data and metadata survive.
[[nodiscard]] std::optional<Part> read_btrfs(const Mount& mount, const Machine& machine);
/// Reads a ZFS pool from `zpool status`.
[[nodiscard]] std::optional<Part> read_zfs(const Mount& mount, const Machine& machine);

// These do so for network file systems, using their clients' tools (composite_network.cpp).
[[nodiscard]] std::optional<Part> read_glusterfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_cephfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_lustre(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_beegfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_gpfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_moosefs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_orangefs(const Mount& mount, const Machine& machine);

// Every reader is in one of these lists, which storage/composite goes through.

/// Of block devices: the first that recognises the device counts.
inline constexpr std::array block_readers{read_md, read_device_mapper, read_bcache};

using MountReader = std::optional<Part> (*)(const Mount&, const Machine&);
/// Of mounts, by Mount::filesystem.
inline constexpr auto mount_readers = std::to_array<std::pair<std::string_view, MountReader>>({
    {"btrfs", read_btrfs},
    {"zfs", read_zfs},
    {"fuse.glusterfs", read_glusterfs},
    {"ceph", read_cephfs},
    {"fuse.ceph", read_cephfs},
    {"fuse.ceph-fuse", read_cephfs},
    {"lustre", read_lustre},
    {"beegfs", read_beegfs},
    {"gpfs", read_gpfs},
    {"fuse.mfs", read_moosefs},
    {"pvfs2", read_orangefs},
});

}  // namespace iosig
