// Mean time to data loss by a continuous-time Markov chain over everything that may have failed at once.
//
// Source: docs/references.md#iosig section 4.1, which gives the closed form for one MDS code only (Eq. 2,
// cost/reliability) and refers to such chains for everything else: nested codes, replicas over nodes, local
// reconstruction codes.
#pragma once

#include "iosig/base/result.h"
#include "iosig/cost/structure.h"

namespace iosig {

/// Mean time in seconds until `structure`, all of it new, has lost data. At most the largest double.
///
/// The chain: each device fails at its own rate; a code rebuilds one lost part at a time, at its rate, onto a new part.
/// A sector that cannot be read loses data when a rebuilding meets it while no redundancy is left, on any level, to
/// make up for it: with probability 1 - exp(-h), h being the unreadable bits expected in everything that is read. With
/// h, lambda / mu and d small this is Eq. 2 (the tests say by how much it is off otherwise).
/// Equal parts are counted instead of told apart, so that the chain of n equal devices in one code has parity + 1
/// states.
///
/// Fails as `infeasible` where the chain has more than `max_chain_states`, or takes longer than some tenths of a
/// second (by a count of its steps); a stripe at the top is then the sum of its parts' rates of loss (off by about the
/// share of time in which a part is being rebuilt), if all of them together do not take longer.
[[nodiscard]] Result<double> chain_mttdl_s(const Structure& structure);

inline constexpr std::size_t max_chain_states = 2000;

}  // namespace iosig
