// What a container says of itself <-> text. The format is docs/formats/container.md.
//
// Pure: text in, text out. Who reads and writes it is container/layout/container_directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

inline constexpr std::uint64_t max_manifest_bytes = 1u << 20;
inline constexpr std::uint32_t max_subdirectories = 4096;

/// How the writes of a container are remembered: as patterns, or as PLFS 2.x does, an entry for each.
enum class IndexKind { pattern, traditional };
[[nodiscard]] std::string_view name_of(IndexKind kind);

/// Whose data lie on a target. A copy of the container's directory has the same id and another inode.
struct ContainerOwner {
  std::string path;         ///< where the container was made
  std::uint64_t inode = 0;  ///< of its directory

  bool operator==(const ContainerOwner&) const = default;
};

struct ContainerManifest {
  std::string id;  ///< 32 lower-case hexadecimal digits, unlike any other container's
  IndexKind index = IndexKind::pattern;
  std::uint32_t subdirectories = 16;  ///< over which the droppings are spread, 1 to 4096
  std::uint32_t mode = 0644;          ///< permissions of the logical file
  std::vector<std::string> targets;   ///< absolute directories that hold the data droppings; none: the container does

  std::optional<ContainerOwner> owner;  ///< in the copy on a target

  bool operator==(const ContainerManifest&) const = default;
};

/// parse_container_manifest(container_manifest_text(m)) == m.
[[nodiscard]] std::string container_manifest_text(const ContainerManifest& manifest);

/// Fails with `bad_input`, "source: what was expected", for a text that was cut, changed, or written by a newer
/// version.
[[nodiscard]] Result<ContainerManifest> parse_container_manifest(std::string_view text, std::string_view source);

/// Whether it is the manifest of a version that this program does not know yet: not damaged, and not to be made anew.
[[nodiscard]] bool is_newer_container_manifest(std::string_view text);

}  // namespace iosig
