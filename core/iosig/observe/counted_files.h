// Counters of files (trace/counters.h) as the facts of streams, so that signatures can be inferred from them.
#pragma once

#include <span>
#include <vector>

#include "iosig/observe/stream_facts.h"
#include "iosig/trace/counters.h"

namespace iosig::observe {

/// Adds the counters to `facts`, which stay in the order of their paths. Counters of a layer in which the file has
/// single accesses are left out.
void add_counters(std::span<const trace::FileCounters> counters, std::vector<StreamFacts>& facts);

}  // namespace iosig::observe
