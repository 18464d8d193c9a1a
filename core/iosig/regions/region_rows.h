// The rows of a region map: how values are packed, what their checksums cover, and which records are possible. Pure.
// Internal to regions/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "iosig/regions/region_map.h"

namespace iosig::regions {

/// Packs stripe sizes, each as a LEB128 number: 7 bits a byte, low ones first.
[[nodiscard]] std::string packed_stripes(std::span<const std::uint64_t> stripe_bytes);
/// Nothing if `bytes` is not what packed_stripes returns.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> unpacked_stripes(std::string_view bytes);

/// Prints the classes as JSON: [["hdd",["h0","h1"]],["ssd",["s0"]]].
[[nodiscard]] std::string classes_text(const std::vector<MappedClass>& classes);
/// Nothing if `text` is not of that form.
[[nodiscard]] std::optional<std::vector<MappedClass>> parse_classes(std::string_view text);

/// Checksums (CRC-32C) in order: a placement's covers its key, its classes and its number of windows; a region's its
/// key, its window and its fields; a window's the same and the checksums of its regions.
[[nodiscard]] std::uint32_t placement_checksum(const MappedPlacement& placement);
[[nodiscard]] std::uint32_t region_checksum(const MapKey& key, std::uint32_t window, const MappedRegion& region);
[[nodiscard]] std::uint32_t window_checksum(const MapKey& key, std::uint32_t window,
                                            std::span<const std::uint32_t> regions);
/// Joins checksums in their order.
[[nodiscard]] std::uint32_t list_checksum(std::span<const std::uint32_t> checksums);

/// Returns what is impossible about a window for so many classes, "region 3: ...", or "".
[[nodiscard]] std::string fault_of(const MappedWindow& regions, std::size_t classes);

/// "'solver' with 16 processes, file '/data/x'", for messages.
[[nodiscard]] std::string about(const MapKey& key);

}  // namespace iosig::regions
