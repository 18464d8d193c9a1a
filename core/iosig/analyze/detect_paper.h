// The paper's Algorithm 1, repaired: repeating differences in a sliding window. Kept as the reference for
// analyze/detect.
//
// Source: docs/references.md#pattern section 2.3, Algorithm 1 and Fig. 8. What is wrong or open there, and here:
// - "for all k, lw[1:k] equals the end of sw": there is a k; the smallest that can be merged.
// - "can be merged with the last elements in ps": these stand for just those k differences; either the last unit's
//   differences are those (it repeats once more), or the last units together are (they become one, repeated twice).
// - r is never initialised: it is 1.
// - n numbers have n - 1 differences, so with r |d| numbers to a unit (model/pattern_unit) the last number is lost;
// here
//   it is put behind, or is one more repetition of a unit of one difference.
// Vectors: the paper describes logical offsets, then lengths and physical offsets in the groups that these fall into.
// Here differences are vectors, equal when all columns are, which describes the same with one list of units.
#pragma once

#include <span>

#include "iosig/model/pattern.h"

namespace iosig {

struct PaperOptions {
  std::uint32_t columns = 1;  ///< 1 to max_columns
  std::uint32_t window = 64;  ///< w: differences in each of the two windows
};

/// Of all of `vectors`, `columns` numbers each. Time O(w n) in practice, O(w^2 n) at worst. Units that do not repeat
/// are literals, the others nests of one loop.
[[nodiscard]] Pattern detect_paper(std::span<const std::int64_t> vectors, const PaperOptions& options);

}  // namespace iosig
