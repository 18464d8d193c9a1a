// Chooses the mount point with the highest predicted throughput for a stream, and explains the result for every mount
// point.
#pragma once

#include <functional>

#include "iosig/base/units.h"
#include "iosig/cost/throughput.h"
#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Assumptions of the cost where a signature is silent.
inline constexpr std::uint64_t assumed_bytes_per_io = MiB;
inline constexpr std::uint64_t assumed_total_bytes = GiB;  ///< only for reliability
inline constexpr double assumed_duration_s = year_s;       ///< only for availability; longer than nearly any job

/// Returns the workload of `wanted` on `mount`; see `assumed_bytes_per_io` for undeclared values.
[[nodiscard]] Workload workload_of(const Signature& wanted, const MountPoint& mount);

/// Filters by the constraints and ranks by predicted throughput (IOSIG paper, section 5).
///
/// Pure: no I/O. Ties, as between copies into one page cache, go to the faster storage below it, then to the earlier
/// entry of the description; equal inputs thus give equal choices. It is not an error if no mount point is admissible:
/// `chosen` is then empty and each candidate has a reason.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& storage,
                                        CostModel model = CostModel::mixed);

/// Sets `free_bytes` and `reserved_bytes`.
using AskRoom = std::function<void(MountPoint&)>;

/// As above, but queries free space only where the choice depends on it: for the best mount point, for the next one if
/// that lacks space, and so on. A server that does not respond causes a delay only if its mount point would win.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& described, const AskRoom& ask_room);

/// Adds what an explanation shows but a decision does not need: how long the data would survive on each candidate.
void explain_reliability(const Signature& wanted, const Storage& storage, Choice& choice);

}  // namespace iosig
