// Checks that a replay left the right bytes, each from the last write to its place. Needs no copy to compare with.
#pragma once

#include <cstdint>

#include "iosig/replay/replay.h"

namespace iosig {

struct CheckMetrics {
  double read_s = 0;  ///< of reading alone, from the first byte to the last
  std::int64_t read_bytes = 0;
  std::int64_t wrong_bytes = 0;
  std::int64_t first_wrong = -1;  ///< offset; -1: none
  std::int64_t shared_bytes = 0;  ///< bytes of the file that more than one rank wrote
};

/// Reads everything that a replay with marked bytes wrote. Where ranks overlap that did not write in the map's order,
/// the last write of any of them is right. Holes must be zeros; only their first megabyte is read. Uses memory in
/// proportion to the map's patterns. Fails like merged_writes() and PatternLookup::of().
[[nodiscard]] Result<CheckMetrics> check_replay(const WriteMap& map, const ReplayTarget& target, bool was_in_turn,
                                                const ReplayWatch& watch);

}  // namespace iosig
