// The paper's Algorithm 1, repaired: repeated differences in a sliding window. Kept as the reference for
// analyze/detect.
//
// Source: docs/references.md#pattern section 2.3, Algorithm 1 and Fig. 8. Errors and gaps in the paper, and what we do:
// - "for all k, lw[1:k] equals the end of sw": we require one such k and take the smallest that can be merged.
// - "can be merged with the last elements in ps": the elements must stand for exactly those k differences. Either the
//   last unit's differences are equal (it repeats once more), or the last units together are (they become one,
//   repeated twice).
// - r is never initialised: we start at 1.
// - n numbers have n - 1 differences, so with r |d| numbers per unit (model/pattern_unit) the last number is lost: we
//   append it, or count it as one more repetition of a unit of one difference.
// Vectors: the paper describes logical offsets, then lengths and physical offsets in the groups that these form. Here a
// difference is a vector, equal when all columns are, which describes the same with one list of units.
#pragma once

#include <span>

#include "iosig/model/pattern.h"

namespace iosig {

struct PaperOptions {
  std::uint32_t columns = 1;  ///< 1 to max_columns
  std::uint32_t window = 64;  ///< w: differences in each of the two windows
};

/// Describes all of `vectors`, `columns` numbers each. Time O(w n) in practice, O(w^2 n) in the worst case. Units that
/// do not repeat become literals, the others nests of one loop.
[[nodiscard]] Pattern detect_paper(std::span<const std::int64_t> vectors, const PaperOptions& options);

}  // namespace iosig
