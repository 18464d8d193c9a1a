// Chooses the mount point on which a stream is predicted to be fastest, and explains every mount point.
#pragma once

#include <functional>

#include "iosig/base/units.h"
#include "iosig/cost/throughput.h"
#include "iosig/model/choice.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// What the cost assumes where a signature does not say.
inline constexpr std::uint64_t assumed_bytes_per_io = MiB;
inline constexpr std::uint64_t assumed_total_bytes = GiB;  ///< only for reliability
inline constexpr double assumed_duration_s = year_s;       ///< only for availability; longer than nearly any job

/// What the cost of `wanted` on `mount` is asked about; see `assumed_bytes_per_io` for what is not stated.
[[nodiscard]] Workload workload_of(const Signature& wanted, const MountPoint& mount);

/// Filters by the constraints, ranks by predicted throughput (IOSIG paper, section 5).
///
/// Pure: touches no disk. Ties, as between copies into one page cache, go to the faster storage behind it, then to the
/// earlier entry of the description, so equal inputs give equal choices.
/// Nothing admissible is not an error: `chosen` is then empty and each candidate says why.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& storage,
                                        CostModel model = CostModel::mixed);

/// Fills in `free_bytes` and `promised_bytes`.
using AskRoom = std::function<void(MountPoint&)>;

/// The same, but room is asked only where the choice depends on it: of the best mount point, of the next one if that
/// has none, and so on. A mount point whose server does not answer holds up nobody unless it would win.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& described, const AskRoom& ask_room);

/// Fills in what an explanation shows and a decision does not wait for: how long the data would last on each candidate.
void explain_reliability(const Signature& wanted, const Storage& storage, Choice& choice);

}  // namespace iosig
