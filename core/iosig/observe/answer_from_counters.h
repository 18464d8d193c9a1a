// Adds to an answer the accesses that traces have as counters alone (trace/counters.h).
#pragma once

#include <span>
#include <vector>

#include "iosig/observe/query.h"

namespace iosig::observe {

/// Adds the numbers, bytes and order of the accesses to the rows with their keys, and new rows. The rows stay in the
/// order of their keys.
///
/// Does nothing where counters do not know the answer: keys other than layer, call, rank and file; nodes and processes;
/// rows of several layers; times, statistics, and conditions on the time or size of a call. Counters of all ranks
/// together belong to no rank.
void add_counted_rows(std::span<const trace::Trace> traces, const Query& query, std::vector<Row>& rows);

}  // namespace iosig::observe
