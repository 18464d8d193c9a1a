// Mean time to data loss by playing failures, rebuildings and unreadable sectors through: what cost/markov is held
// against, and what remains where lives are not exponential.
#pragma once

#include <cstdint>
#include <functional>

#include "iosig/base/result.h"
#include "iosig/cost/structure.h"

namespace iosig {

struct Simulation {
  double mttdl_s = 0;                      ///< infinite while no loss was met, and ci95_high_s with it
  double ci95_low_s = 0, ci95_high_s = 0;  ///< 95 % confidence interval of mttdl_s
  std::uint64_t losses = 0;                ///< that were played; those in retrials stand for less than one each
  std::uint64_t events = 0;  ///< failures and rebuildings that were played, in the pilot and in retrials too
  bool is_precise = false;   ///< the interval is as narrow as was asked for
};

struct SimulationOptions {
  std::uint64_t seed = 1;
  double precision = 0.05;                    ///< half of the interval's width, relative to mttdl_s; > 0
  double weibull_shape = 1;                   ///< of the devices' lives, whose mean stays the MTTF; 1: exponential
  unsigned threads = 0;                       ///< 0: as many as there are processors; the result is the same for any
  std::uint64_t max_events = 20'000'000'000;  ///< to give up at
  /// Called now and then from the calling thread with what is known so far: in the pilot no more than the events.
  std::function<void(const Simulation&)> on_progress = {};
};

/// Simulates `structure` as cost/markov describes it: devices that fail, codes that rebuild one lost part at a time in
/// an exponential time, sectors that turn out unreadable when no redundancy is left.
///
/// Rare losses are reached by splitting (RESTART: M. and J. Villen-Altamirano 1991): whenever one device failure fewer
/// than before would lose data, the state is played on from several times with a part of its weight each, until it
/// falls back. How many times is found by a pilot run. Of the last step to the loss, the chance is counted instead of
/// the event. All of it is unbiased: MTTDL = mean time from new to new or lost / mean losses on the way. With Weibull
/// lives, which remember, the time is taken of a system that is some lives old; where data are lost sooner than that,
/// every run starts new and ends with a loss.
///
/// Deterministic for a seed. Fails as `infeasible` for more than 100,000 devices, for more than 64 failures to a loss,
/// where no loss is met within a minute or so (a bound on events, fewer for more devices), and where the structure does
/// not get back to new within that; as `usage` for a precision or shape that cannot be.
[[nodiscard]] Result<Simulation> simulate_mttdl(const Structure& structure, const SimulationOptions& options);

}  // namespace iosig
