// Which block size the times of synchronised appends match, for devices whose block size no system call tells: network
// file systems and composites. Pure.
//
// Source: docs/references.md#iosig section 7, Fig. 6c: "throughput reaching peaks and troughs every 22 KB, the internal
// blocksize of the device. [...] We determine the closest block size match for complex block devices automatically by
// benchmarking". The paper does not say how; ours: the block size with which Eq. 3 fits the times best.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "iosig/base/units.h"
#include "iosig/storage/fit.h"

namespace iosig {

/// Sizes of appends to time: every 2 KB up to 128 KB.
inline constexpr std::array<std::uint64_t, 64> block_size_steps = [] {
  std::array<std::uint64_t, 64> sizes{};
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = (i + 1) * 2 * KiB;
  return sizes;
}();

/// Returns the block size, a multiple of 2 KB from `reported` to 64 KB, for which t = l + ts/wbw + d e (Eq. 3, with e
/// for the read of a partial block) has the smallest sum of squared relative errors over `times`. Returns `reported`
/// unless another size at least halves that sum, or with fewer than half of `block_size_steps` timed: noise also
/// favours one size or another. A multiple of a block size fits worse than the size itself, and the smaller of equals
/// wins.
[[nodiscard]] std::uint64_t closest_block_bytes(std::span<const TimedSize> times, std::uint64_t reported);

}  // namespace iosig
