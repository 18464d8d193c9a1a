// The patterns of many processes as one: folded over the processes, overlapping accesses in their order.
//
// Source: docs/references.md#pattern section 2.3, Figs. 10 to 12 (global patterns, ids compressed too). Theirs merges
// patterns whose starts grow evenly, and forgets what came first. Ours folds whole nests (analyze/term_stack), of any
// ranks in any regular arrangement, after it has proved by their strides which accesses of unlike processes never meet
// (analyze/overlap); those that may are put in their order, one by one only where it must be.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// What one process accessed, or a part of that.
struct LocalPattern {
  /// checked(), of columns logical, length, physical and, perhaps, sequence, named so or not at all: numbers on one
  /// scale for all processes that never fall in a process and say what came before what. Physical offsets may follow
  /// lengths.
  const Pattern* pattern = nullptr;
  std::int64_t id = 0;  ///< parts of one process have one id and come in order
  /// On the same scale: where there is no sequence, all accesses lie in [opened, closed]. Of two parts of which neither
  /// ends before the other begins, nobody knows which came first; they must not overlap, or it must not matter.
  std::int64_t opened = std::numeric_limits<std::int64_t>::min();
  std::int64_t closed = std::numeric_limits<std::int64_t>::max();
  std::string_view source = {};  ///< for messages, instead of "process ID"
};

struct MergeOptions {
  unsigned threads = 0;  ///< 0: as many as there are processors; the result is the same for any
  std::uint64_t max_expanded = std::uint64_t{1} << 28;  ///< accesses
};

struct MergedPattern {
  /// Columns logical, length, physical, id. Each process's accesses are in its order. Of two processes' accesses that
  /// share a byte, the one with the lower sequence number (or the part that closed before the other opened) comes
  /// first.
  Pattern pattern;
  std::uint64_t interleaved = 0;  ///< accesses that had to be put in order one by one
};

/// Takes time by the size of the descriptions, unless processes overlap at the same time, or lengths vary and physical
/// offsets follow them: those parts are expanded. Fails: `bad_input` for unlike columns, accesses that begin below 0,
/// are shorter than 0 bytes or end after byte 2^63 - 1, and sequence numbers that fall (seen where it matters);
/// `infeasible` for more than `max_expanded` accesses that would have to be expanded, and for nests of more than 2^20
/// whose logical offsets follow sums of varying lengths.
[[nodiscard]] Result<MergedPattern> merge_patterns(std::span<const LocalPattern> locals,
                                                   const MergeOptions& options = {});

}  // namespace iosig
