// Answers questions about sums from the sums of the blocks of traces (trace/block_sums.h), without unpacking calls.
// Blocks without sums, and calls in slots, are read and added up.
#pragma once

#include <optional>
#include <span>

#include "iosig/observe/query.h"

namespace iosig::observe {

/// Nothing: sums do not tell the answer. That is so where some call was made during another one (it may have to be left
/// out), where order matters and accesses of a stream overlap in time, and for windows, lists, values of single calls
/// (but durations, see Query::coarse_from), busy times, and ranges of time or size.
/// Fails with `usage` if there would be more than max_rows rows.
[[nodiscard]] Result<std::optional<Answer>> answer_from_sums(std::span<const trace::Trace> traces, const Query& query);

}  // namespace iosig::observe
