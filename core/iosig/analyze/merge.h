// Merges the patterns of many processes into one. Overlapping accesses keep their order.
//
// Example: 1000 ranks r with the offsets 4096 (1000 i + r) for i < 16 become one nest over r and i.
//
// Source: docs/references.md#pattern section 2.3, Figs. 10 to 12 (global patterns, ids compressed too). The paper
// merges patterns whose starts grow evenly and discards the order of accesses. We fold whole nests (analyze/term_stack)
// of any ranks in any regular arrangement. First we prove by strides which accesses of different processes cannot
// overlap (analyze/overlap); the others are put in order, access by access only where necessary.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// The accesses of one process, or a part of them.
struct LocalPattern {
  /// Must be checked() and have the columns logical, length, physical and optionally sequence, with these names or
  /// none. Sequence numbers are on one scale for all processes, never fall within a process and define the order of
  /// accesses. Physical offsets may follow lengths.
  const Pattern* pattern = nullptr;
  std::int64_t id = 0;  ///< parts of one process have one id and come in order
  /// On the same scale: without a sequence column, all accesses lie in [opened, closed]. The order of two parts is
  /// unknown if neither closes before the other opens. Such parts must not overlap, or the order must not matter.
  std::int64_t opened = std::numeric_limits<std::int64_t>::min();
  std::int64_t closed = std::numeric_limits<std::int64_t>::max();
  std::string_view source = {};  ///< for messages, instead of "process ID"
};

struct MergeOptions {
  unsigned threads = 0;                                 ///< 0: as many as processors; the result does not depend on it
  std::uint64_t max_expanded = std::uint64_t{1} << 28;  ///< accesses
};

struct MergedPattern {
  /// Columns logical, length, physical, id. The accesses of each process keep their order. If accesses of two processes
  /// share a byte, the one with the lower sequence number comes first (or the one of the part that closed before the
  /// other opened).
  Pattern pattern;
  std::uint64_t interleaved = 0;  ///< accesses that had to be ordered one by one
};

/// Merges in time proportional to the size of the descriptions. Parts are expanded only if processes overlap at the
/// same time, or if lengths vary and physical offsets follow them. Fails with `bad_input` for mismatched columns, for
/// accesses that begin below 0, have a negative length or end after byte 2^63 - 1, and for falling sequence numbers
/// (detected only where they matter); with `infeasible` if more than `max_expanded` accesses would have to be expanded,
/// and for nests of more than 2^22 accesses whose logical offsets follow sums of varying lengths.
[[nodiscard]] Result<MergedPattern> merge_patterns(std::span<const LocalPattern> locals,
                                                   const MergeOptions& options = {});

}  // namespace iosig
