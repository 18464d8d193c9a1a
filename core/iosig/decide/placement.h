// Chooses the mount point for a stream, and explains the result for every mount point.
//
//   Policy::job    the least time until the data are where they must be: what is read is copied there, the program's
//                  transfers, a flush, and bringing the data home. Storage that loses data with power only takes data
//                  that are declared `temp` or `volatile`
//   Policy::paper  the highest throughput of the program's operations (IOSIG paper, section 5). Where a stream says
//                  neither persist nor temp, it may live in memory
#pragma once

#include <functional>

#include "iosig/base/units.h"
#include "iosig/cost/job_time.h"
#include "iosig/cost/throughput.h"
#include "iosig/model/choice.h"
#include "iosig/model/circumstances.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Assumptions of the cost where a signature is silent.
inline constexpr std::uint64_t assumed_bytes_per_io = MiB;
inline constexpr std::uint64_t assumed_total_bytes = GiB;  ///< for reliability, and to compare times
inline constexpr double assumed_duration_s = year_s;       ///< only for availability; longer than nearly any job

/// Returns the workload of `wanted` on `mount`; see `assumed_bytes_per_io` for undeclared values.
[[nodiscard]] Workload workload_of(const Signature& wanted, const MountPoint& mount);

/// Filters by the constraints and ranks the others by the policy of `given`.
///
/// Pure: no I/O. Ties go to the faster storage below the page cache, then to the earlier entry of the description;
/// equal inputs thus give equal choices. By Policy::job the path's own mount point (home) is left only for one that
/// saves `given.min_gain` of its time. Without a totalsize, times are those of assumed_total_bytes, and writes that do
/// not wait run at the speed of the storage, since the page cache may be too small for them.
/// It is not an error if no mount point is admissible: `chosen` is then empty and each candidate has a reason.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& storage, const Circumstances& given,
                                        CostModel model = CostModel::mixed);

/// Sets `free_bytes`, `reserved_bytes` and `withheld_bytes`.
using AskRoom = std::function<void(MountPoint&)>;

/// As above, but queries free space only where the choice depends on it: for the best `count` mount points, for the
/// next one if one of those lacks space, and so on; also at home, if declared data would have to come home. A server
/// that does not respond causes a delay only if its mount point would be one of them.
[[nodiscard]] Choice choose_mount_point(const Signature& wanted, const Storage& described, const Circumstances& given,
                                        const AskRoom& ask_room, std::size_t count = 1);

/// Whether the data must be brought home from `mount` after the job: they are not temporary, and either must be at
/// their path or would be lost with power. Sealed data stay.
[[nodiscard]] bool must_come_home(const Signature& wanted, const MountPoint& mount, const Circumstances& given);

/// Returns `wanted` with the residence that a redirect to `mount` records for finalize: `rest`, or none if the data
/// must come home.
[[nodiscard]] Signature with_residence(const Signature& wanted, const MountPoint& mount, const Circumstances& given);

/// Adds what an explanation shows but a decision does not need: how long the data would survive on each candidate.
void explain_reliability(const Signature& wanted, const Storage& storage, Choice& choice);

/// Returns a warning if the chosen mount point may fill up although home has room: the stream declares no totalsize,
/// and there is less room there. Else "". Where no path is known, home may be any mount point: the one with the most
/// room counts. Needs their free space; one without it counts as full, one
/// with max_bytes (unknown) does not count.
[[nodiscard]] std::string room_warning(const Signature& wanted, const Storage& storage, const Circumstances& given,
                                       const Choice& choice);

/// Adds, to a choice to stay at home, when each other mount point would win. Up to max_break_even_passes.
void explain_break_even(const Signature& wanted, const Storage& storage, const Circumstances& given, Choice& choice);
inline constexpr std::uint64_t max_break_even_passes = 1000;

}  // namespace iosig
