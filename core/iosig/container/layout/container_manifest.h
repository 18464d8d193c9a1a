// Converts a container's manifest to text and back. The format is docs/formats/container.md.
//
// Pure: text in, text out. container/layout/container_directory reads and writes the file.
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

/// The index format: patterns, or one entry for each write, as in PLFS 2.x.
enum class IndexKind { pattern, traditional };
[[nodiscard]] std::string_view name_of(IndexKind kind);

/// The container that owns the data on a target. A copy of its directory has the same id, but another inode.
struct ContainerOwner {
  std::string path;         ///< where the container was made
  std::uint64_t inode = 0;  ///< of its directory

  bool operator==(const ContainerOwner&) const = default;
};

/// Versions of the format: 1, and 2, in which the checksum of each index frame depends on its writer and its place.
inline constexpr std::uint32_t newest_container_version = 2;

struct ContainerManifest {
  /// Of the indices that new writers make; an older writer's index has a version of its own.
  std::uint32_t version = newest_container_version;
  std::string id;  ///< 32 lower-case hexadecimal digits, unique to this container
  IndexKind index = IndexKind::pattern;
  std::uint32_t subdirectories = 16;  ///< the droppings are spread over so many; 1 to 4096
  std::uint32_t mode = 0644;          ///< permissions of the logical file
  /// Absolute paths of the directories with the data droppings; empty: the container has them.
  std::vector<std::string> targets;

  std::optional<ContainerOwner> owner;  ///< only in the copy on a target

  bool operator==(const ContainerManifest&) const = default;
};

/// parse_container_manifest(container_manifest_text(m)) == m.
[[nodiscard]] std::string container_manifest_text(const ContainerManifest& manifest);

/// Fails with `bad_input`, "source: what was expected", for a text that was cut, changed, or written by a newer
/// version.
[[nodiscard]] Result<ContainerManifest> parse_container_manifest(std::string_view text, std::string_view source);

/// Whether the text is a manifest of a later version. Such a manifest is not damaged; do not rebuild it.
[[nodiscard]] bool is_newer_container_manifest(std::string_view text);

}  // namespace iosig
