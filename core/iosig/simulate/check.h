// Whether a system can be simulated.
#pragma once

#include "iosig/simulate/engine.h"

namespace iosig::simulate {

inline constexpr std::uint64_t bytes_limit = 1ULL << 62;  ///< above offsets, lengths and periods

/// As run() says; `usage` with the number that is wrong.
[[nodiscard]] Result<void> check(const System& system);

}  // namespace iosig::simulate
