// Computes the mean time to data loss by simulating failures, rebuilds and unreadable sectors. Serves to validate
// cost/markov, and for lifetimes that are not exponential.
#pragma once

#include <cstdint>
#include <functional>

#include "iosig/base/result.h"
#include "iosig/cost/structure.h"

namespace iosig {

struct Simulation {
  double mttdl_s = 0;                      ///< infinite until a loss occurs, as is ci95_high_s
  double ci95_low_s = 0, ci95_high_s = 0;  ///< 95 % confidence interval of mttdl_s
  std::uint64_t losses = 0;                ///< simulated; a loss in a retrial has a weight below one
  std::uint64_t events = 0;                ///< simulated failures and rebuilds, including the pilot and retrials
  bool is_precise = false;                 ///< the interval is as narrow as requested
};

struct SimulationOptions {
  std::uint64_t seed = 1;
  double precision = 0.05;   ///< half the interval's width, relative to mttdl_s; > 0
  double weibull_shape = 1;  ///< of the devices' lifetimes, whose mean remains the MTTF; 1: exponential
  unsigned threads = 0;      ///< 0: as many as processors; the result does not depend on it
  std::uint64_t max_events = 20'000'000'000;  ///< limit after which to give up
  /// Called from time to time in the calling thread with the results so far; during the pilot only with the events.
  std::function<void(const Simulation&)> on_progress = {};
};

/// Simulates `structure` as cost/markov describes it: devices fail, codes rebuild one lost part at a time in an
/// exponential time, sectors turn out unreadable when no redundancy is left.
///
/// Rare losses are reached by splitting (RESTART: M. and J. Villen-Altamirano 1991). Whenever the number of device
/// failures needed for a loss decreases, the state is continued several times, each with part of its weight, until that
/// number increases again. A pilot run determines how many times. For the last step to the loss, the probability is
/// added instead of simulating the event. All of this is unbiased: MTTDL = mean time from new to new or lost / mean
/// losses on the way. Weibull lifetimes have memory; there the time is taken from a system that is some lifetimes old.
/// If data are lost sooner than that, every run starts new and ends with a loss.
///
/// Deterministic for a given seed. Fails with `infeasible` for more than 100,000 devices, for more than 64 failures to
/// a loss, if no loss occurs within about a minute (a limit on events, lower for more devices), and if the structure
/// does not return to new within that limit; with `usage` for an impossible precision or shape.
[[nodiscard]] Result<Simulation> simulate_mttdl(const Structure& structure, const SimulationOptions& options);

}  // namespace iosig
