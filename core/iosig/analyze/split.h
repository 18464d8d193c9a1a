// Takes the turns of a nest's outermost loop apart, to allow insertions between them.
#pragma once

#include <cstdint>
#include <span>

#include "iosig/model/pattern.h"

namespace iosig {

/// Returns whether turns_apart() can take the nest `term` apart: a loop over loops with at most `max_turns` turns and
/// constant trip counts.
[[nodiscard]] bool can_take_apart(const Pattern& pattern, std::uint32_t term, std::int64_t max_turns);

/// Returns a pattern of the same sequence in which the outermost loop of each nest of `terms` is unrolled: the loops in
/// it become nests of their own, turn by turn. `terms` must be sorted and satisfy can_take_apart().
[[nodiscard]] Pattern turns_apart(const Pattern& pattern, std::span<const std::uint32_t> terms);

}  // namespace iosig
