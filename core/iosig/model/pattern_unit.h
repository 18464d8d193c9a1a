// The paper's pattern unit [i,(d[0], d[1], ..)^r], as a view of patterns of one column.
//
// Source: docs/references.md#pattern, Figs. 7, 8, 12 and section 4.2, which do not agree: Figs. 8, 9 and 12 read a unit
// as r |d| numbers, Fig. 7 and section 4.2 as r |d| + 1. Ours is r |d|: the last delta leads to where the next
// repetition would begin, units stand one after the other without sharing a number, and an empty sequence has one (r =
// 0).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

struct PatternUnit {
  std::int64_t first = 0;
  std::vector<std::int64_t> deltas;  ///< not empty
  std::uint64_t repetitions = 0;

  bool operator==(const PatternUnit&) const = default;
};

/// "[0,(3, 4, 7)^3]".
[[nodiscard]] std::string unit_text(const PatternUnit& unit);

/// The pattern of one column that the units stand for, one after the other. Each is a nest of one loop; those of fewer
/// than two repetitions are literals. Fails with `bad_input` where a number does not fit 64 bits, or deltas are
/// missing.
[[nodiscard]] Result<Pattern> pattern_of(std::span<const PatternUnit> units);

/// The same as units. Nothing where there is more than one column, a nest in a nest (a pattern tree), strides that
/// differ within a loop, or exceptions. Literals are units of one number each, their delta the step to the next.
[[nodiscard]] std::optional<std::vector<PatternUnit>> units_of(const Pattern& pattern);

/// Of a unit read with r |d| + 1 numbers: the units that stand for the same with r |d|.
[[nodiscard]] std::vector<PatternUnit> from_closed(const PatternUnit& closed);
/// The other way: a unit that stands for n numbers has n - 1 deltas when it is closed, so what is left of its last
/// repetition becomes a unit of its own. Nothing for a unit without numbers; one number alone is (d)^0.
[[nodiscard]] std::vector<PatternUnit> to_closed(const PatternUnit& unit);

}  // namespace iosig
