// The readers of composites, and what they are made with. Used by storage/composite, and individually by tests.
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

/// Returns whether `word` is safe as an argument of a tool, which can take it for no option and no list. Whatever a
/// mount names must be plain, or an absolute path.
[[nodiscard]] bool is_plain(std::string_view word);
/// Returns the output of a tool that prints lines; nothing if it failed or its last line is truncated.
[[nodiscard]] std::optional<std::string> ask(const Machine& machine, const Command& command);

// A reader answers for one level of one kind, or gives nothing if it is of another kind or in doubt. Each is described
// where it is defined.

/// Of block devices, by the sysfs directory of the whole device (composite_block.cpp). The first that recognises the
/// device counts, so each must know its kind by something that no other has (md/, dm/, bcache/).
[[nodiscard]] std::optional<Part> read_md(const std::filesystem::path& directory, const Machine& machine);
[[nodiscard]] std::optional<Part> read_device_mapper(const std::filesystem::path& directory, const Machine& machine);
[[nodiscard]] std::optional<Part> read_bcache(const std::filesystem::path& directory, const Machine& machine);
inline constexpr std::array block_readers{read_md, read_device_mapper, read_bcache};

/// Of mounts, by Mount::filesystem: the rows of model/filesystems.inc that name a reader (composite_filesystem.cpp,
/// composite_network.cpp).
using MountReader = std::optional<Part> (*)(const Mount& mount, const Machine& machine);
#define IOSIG_FILESYSTEM(...)
#define IOSIG_COMPOSITE(name, magic, traits, max_file_bytes, reader) \
  [[nodiscard]] std::optional<Part> reader(const Mount& mount, const Machine& machine);
#include "iosig/model/filesystems.inc"
#undef IOSIG_COMPOSITE
#define IOSIG_COMPOSITE(name, magic, traits, max_file_bytes, reader) {name, reader},
inline constexpr auto mount_readers = std::to_array<std::pair<std::string_view, MountReader>>({
#include "iosig/model/filesystems.inc"
});
#undef IOSIG_COMPOSITE
#undef IOSIG_FILESYSTEM

}  // namespace iosig
