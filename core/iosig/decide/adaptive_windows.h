// Joins windows of a trace in which the regions of its files are used alike: a plan for fewer windows is made sooner,
// and moves nothing because of chance.
//
// Pure. Ours: docs/references.md#h2dp section 3.3 has windows of 10 minutes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace iosig {

/// Returns for each joined window the number of the window that it ends with, ascending. `counts[window][region]`:
/// requests; as many regions in each. A window joins those before it while its requests go to the regions in shares
/// that differ by at most a fifth of the requests (total variation distance), beyond what chance explains; also if it
/// has none.
[[nodiscard]] std::vector<std::size_t> joined_windows(std::span<const std::vector<std::uint64_t>> counts);

}  // namespace iosig
