// Computes the mean time to data loss with a continuous-time Markov chain over everything that can have failed at once.
//
// Source: docs/references.md#iosig section 4.1, which gives the closed form only for a single MDS code (Eq. 2,
// cost/reliability) and refers to such chains for everything else: nested codes, replicas over nodes, local
// reconstruction codes.
#pragma once

#include "iosig/base/result.h"
#include "iosig/cost/structure.h"

namespace iosig {

/// Returns the mean time in seconds until `structure`, initially new, has lost data; at most the largest double.
///
/// The chain: each device fails at its own rate; a code rebuilds one lost part at a time, at its own rate, onto a new
/// part. An unreadable sector loses data if a rebuild encounters it while no redundancy on any level is left to
/// compensate for it. The probability is 1 - exp(-h), where h is the expected number of unreadable bits in everything
/// that is read. For small h, lambda / mu and d this equals Eq. 2 (the tests show the deviation otherwise). Equal parts
/// are counted, not distinguished; n equal devices in one code thus need parity + 1 states.
///
/// Fails with `infeasible` if the chain has more than `max_chain_states` or would take longer than some tenths of a
/// second (by a count of its steps). A stripe at the top is then computed as the sum of its parts' loss rates if all of
/// them together stay within that limit; the relative error is about the share of time in which a part is being
/// rebuilt.
[[nodiscard]] Result<double> chain_mttdl_s(const Structure& structure);

inline constexpr std::size_t max_chain_states = 2000;

}  // namespace iosig
