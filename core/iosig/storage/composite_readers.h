// The readers of composites: each tells one level of one kind, or nothing where it is not that kind or cannot be told
// for sure. Used by storage/composite, and by tests one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/model/storage.h"
#include "iosig/storage/machine.h"
#include "iosig/storage/mountinfo.h"

namespace iosig {

/// What a composite is made of, as one reader knows it: a tree whose leaves may be composites for another reader.
struct Part {
  enum class Kind {
    block,      ///< a block device of this machine, by the kernel's name: "sda1", "dm-3"
    elsewhere,  ///< a device of a server, which nobody here can look into
    composite,  ///< of `parts`
  } kind = Kind::block;
  std::string name = {};  ///< of a composite: its own, or "" to go by that of what it carries
  std::string path = {};  ///< of what is no block device: where, as in the description
  // composite
  RedundancyScheme scheme = RedundancyScheme::stripe;
  std::uint32_t data = 0, parity = 0;  ///< as in Redundancy; without parts, what is known of devices that are not
  std::vector<Part> parts = {};

  bool operator==(const Part&) const = default;
};

[[nodiscard]] Part block_part(std::string name);
[[nodiscard]] Part part_elsewhere(std::string name);
/// `scheme` over `parts`, where data and parity follow from their number.
[[nodiscard]] Part composite_part(RedundancyScheme scheme, std::vector<Part> parts);
/// The data are lost with more than `losses` of `parts`, whichever these are: a stripe, mirrors (replicas
/// elsewhere) or an MDS code.
/// Nothing where all of them may be lost: there is no such thing.
[[nodiscard]] std::optional<Part> tolerant_part(std::uint32_t losses, std::vector<Part> parts);
/// A code over devices that are not known one by one; nothing for what protects nothing, or has no data.
[[nodiscard]] std::optional<Part> unnamed_part(RedundancyScheme scheme, std::uint32_t data, std::uint32_t parity);
/// Consecutive `parts`, `each` to a group that survives `losses` of its own, striped.
[[nodiscard]] std::optional<Part> striped_groups(std::uint32_t losses, std::size_t each, std::vector<Part> parts);

/// What a tool printed; nothing when it failed or was cut off within a line.
[[nodiscard]] std::optional<std::string> ask(const Machine& machine, const Command& command);

// Of the directory in sysfs of a whole block device (composite_block.cpp).
/// md, by its directory `md/`: linear and levels 0, 1, 4, 5, 6, 10.
[[nodiscard]] std::optional<Part> read_md(const std::filesystem::path& directory, const Machine& machine);
/// Device-mapper, by `dmsetup table` (root only): LVM, encryption, caches; else over a single device, by `slaves/`.
[[nodiscard]] std::optional<Part> read_device_mapper(const std::filesystem::path& directory, const Machine& machine);
/// bcache: its backing device; a cache that holds data of its own (writeback) is needed too.
[[nodiscard]] std::optional<Part> read_bcache(const std::filesystem::path& directory, const Machine& machine);

// Of a mount of that file system (composite_filesystem.cpp).
/// btrfs, by sysfs: what data and metadata both survive.
[[nodiscard]] std::optional<Part> read_btrfs(const Mount& mount, const Machine& machine);
/// A ZFS pool, by `zpool status`.
[[nodiscard]] std::optional<Part> read_zfs(const Mount& mount, const Machine& machine);

// The same of network file systems, by their clients' tools (composite_network.cpp).
[[nodiscard]] std::optional<Part> read_glusterfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_cephfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_lustre(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_beegfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_gpfs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_moosefs(const Mount& mount, const Machine& machine);
[[nodiscard]] std::optional<Part> read_orangefs(const Mount& mount, const Machine& machine);

}  // namespace iosig
