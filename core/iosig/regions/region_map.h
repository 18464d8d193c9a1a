// The region map: where each region of a file lies in each window, kept in one SQLite file.
//
// Plain records in, plain records out; each call opens the file, works in one transaction and closes it, so no caller
// holds a lock. The format is docs/formats/region-map.md. Source: H2DP, section 4.2 (its region mapping table, RMT):
// the key is application, number of processes, original file and region; the value is the target file and the stripe
// sizes. Ours: stripes for any number of server classes, a checksum for each row and each list of rows.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::regions {

/// Which runs a placement is for.
struct MapKey {
  std::string application;
  std::uint32_t processes = 1;
  std::string file;  ///< path of the original file, as in the trace

  auto operator<=>(const MapKey&) const = default;  // NOLINT(modernize-use-nullptr): of the compiler's code
};

/// Servers that count as equal. A round of stripes visits the classes, and the servers of each, in this order.
struct MappedClass {
  std::string name;
  std::vector<std::string> servers;

  bool operator==(const MappedClass&) const = default;
};

struct MappedRegion {
  std::uint32_t number = 0;  ///< place in the file's list of regions, from 0
  std::uint64_t offset_bytes = 0, length_bytes = 0;
  std::vector<std::uint64_t> stripe_bytes;  ///< one for each class; 0: the class holds nothing of the region
  std::string target;                       ///< name of the file that holds the region

  bool operator==(const MappedRegion&) const = default;
};
using MappedWindow = std::vector<MappedRegion>;  ///< by number; regions do not overlap

struct MappedPlacement {
  MapKey key;
  std::vector<MappedClass> classes;
  std::vector<MappedWindow> windows;  ///< RMT[0], RMT[1], ...

  bool operator==(const MappedPlacement&) const = default;
};

/// Reads all placements, by key. Verifies every checksum and every count. Fails with `bad_input` if the file is no
/// region map, is of another version, or is damaged: the message names the file, the placement, the window and the
/// region. Fails with `system` if it cannot be read.
[[nodiscard]] Result<std::vector<MappedPlacement>> read_region_map(const std::string& path);

/// Reads one window. Fails as above (only what it reads is verified), and with `infeasible` if the map has no such
/// placement or window.
[[nodiscard]] Result<MappedWindow> read_window(const std::string& path, const MapKey& key, std::uint32_t window);

/// Adds each placement, or replaces the one with its key: all in one transaction, durably. A crash at any point leaves
/// the old content or the new one. Creates a missing file.
/// Fails with `bad_input` for an impossible placement (regions that overlap, are empty or pass 2^63 bytes, numbers that
/// do not ascend, another number of stripes than classes, no stripe at all), and as read_region_map if the file is
/// damaged: nothing is written into a damaged file. `infeasible`: no space.
[[nodiscard]] Result<void> store_placements(const std::string& path, std::span<const MappedPlacement> placements);
[[nodiscard]] inline Result<void> store_placement(const std::string& path, const MappedPlacement& placement) {
  return store_placements(path, {&placement, 1});
}

/// Returns the placements to store, made from all that are stored, by key.
using Revise = std::function<Result<std::vector<MappedPlacement>>(std::span<const MappedPlacement>)>;
/// As store_placements, with what `revise` returns; no other writer comes in between. Fails with `system` if there is
/// no such file, and as `revise` does, with the map's name before its message.
[[nodiscard]] Result<void> revise_placements(const std::string& path, const Revise& revise);

/// As store_placement, for one window of a stored placement, as migrations need it. `window` may be one past the last.
[[nodiscard]] Result<void> replace_window(const std::string& path, const MapKey& key, std::uint32_t window,
                                          const MappedWindow& regions);

}  // namespace iosig::regions
