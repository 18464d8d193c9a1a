// The writes that the tail of a writer describes, as a frame of its index would.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/container/layout/index_frames.h"
#include "iosig/container/layout/tail.h"

namespace iosig {

/// Returns the writes of `records` from byte `known` of the data dropping on. If the counts of a record do not agree,
/// because it was being updated or is damaged, returns its writes up to the end of the data.
[[nodiscard]] IndexedWrites writes_in_tail(const std::vector<TailRecord>& records, std::int64_t known,
                                           std::int64_t data_bytes);

}  // namespace iosig
