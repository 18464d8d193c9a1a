// Chooses the mount point on which a stream is predicted to be fastest, and explains every mount point.
#pragma once

#include "iosig/base/units.h"
#include "iosig/cost/throughput.h"
#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// What the cost assumes where a signature does not say.
inline constexpr std::uint64_t assumed_bytes_per_io = MiB;
inline constexpr std::uint64_t assumed_total_bytes = GiB;  ///< only for reliability

/// Filters by the constraints, ranks by predicted throughput (IOSIG paper, section 5).
///
/// Pure: touches no disk. Ties go to the earlier entry of the description, so equal inputs give equal choices.
/// Nothing admissible is not an error: `chosen` is then empty and each candidate says why.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& storage,
                                        CostModel model = CostModel::mixed);

}  // namespace iosig
