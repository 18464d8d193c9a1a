// Taking the turns of a nest's outermost loop apart, for those who have to put something between them.
#pragma once

#include <cstdint>
#include <span>

#include "iosig/model/pattern.h"

namespace iosig {

/// Whether turns_apart() takes the nest `term` apart: a loop over loops, at most `max_turns` turns, constant trip
/// counts.
[[nodiscard]] bool can_take_apart(const Pattern& pattern, std::uint32_t term, std::int64_t max_turns);

/// The same sequence. Of each nest of `terms` (in order; can_take_apart()), the loops in its outermost loop are nests
/// of their own, turn after turn.
[[nodiscard]] Pattern turns_apart(const Pattern& pattern, std::span<const std::uint32_t> terms);

}  // namespace iosig
