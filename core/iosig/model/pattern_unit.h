// The paper's pattern unit [i,(d[0], d[1], ..)^r], as a view of patterns of one column.
//
// Source: docs/references.md#pattern, Figs. 7, 8, 12 and section 4.2, which are inconsistent: Figs. 8, 9 and 12 read a
// unit as r |d| numbers, Fig. 7 and section 4.2 as r |d| + 1. We use r |d|: the last delta leads to the beginning of
// the next repetition, consecutive units share no number, and an empty sequence has a unit (r = 0).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

struct PatternUnit {
  std::int64_t first = 0;
  std::vector<std::int64_t> deltas;  ///< never empty
  std::uint64_t repetitions = 0;

  bool operator==(const PatternUnit&) const = default;
};

/// Returns a text such as "[0,(3, 4, 7)^3]".
[[nodiscard]] std::string unit_text(const PatternUnit& unit);

/// Returns the one-column pattern of the concatenated units. Each becomes a nest of one loop, or literals with fewer
/// than two repetitions. Fails with `bad_input` if a number does not fit 64 bits or deltas are missing.
[[nodiscard]] Result<Pattern> pattern_of(std::span<const PatternUnit> units);

/// Converts a pattern to units. Returns nothing for more than one column, nested loops (a pattern tree), strides that
/// differ within a loop, or exceptions. Literals become units of one number each; their delta is the step to the next
/// number.
[[nodiscard]] std::optional<std::vector<PatternUnit>> units_of(const Pattern& pattern);

/// Converts a unit of r |d| + 1 numbers to units of r |d| numbers.
[[nodiscard]] std::vector<PatternUnit> from_closed(const PatternUnit& closed);
/// Converts back: a unit of n numbers has n - 1 deltas in closed form, so the rest of its last repetition becomes a
/// separate unit. Returns nothing for a unit without numbers; a single number is (d)^0.
[[nodiscard]] std::vector<PatternUnit> to_closed(const PatternUnit& unit);

}  // namespace iosig
