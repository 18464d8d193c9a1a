// Reads the clock of a trace and CLOCK_MONOTONIC together: what turns ticks into nanoseconds.
//
// For traced programs, too: no allocation, lock or errno; clock_gettime(2) is no system call where there is a vDSO.
#pragma once

#include <cstdint>
#include <ctime>

#include "iosig/trace/part_layout.h"

namespace iosig::trace {

/// Reads the time stamp counter; 0 where there is none. The header for it, x86intrin.h, takes 0.4 s to compile.
[[nodiscard]] inline std::uint64_t read_tsc() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

/// Returns a pair of readings; `ticks()` reads the trace's clock. Of several tries the quickest counts: what comes in
/// between, as another process on a busy machine, would make the pair wrong by its duration.
template <class Ticks>
[[nodiscard]] ClockPair clock_pair(const Ticks& ticks) {
  constexpr int tries = 4;
  ClockPair best{};
  std::uint64_t least = UINT64_MAX;
  for (int n = 0; n < tries; ++n) {
    timespec time{};
    const std::uint64_t before = ticks();
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    const std::uint64_t taken = ticks() - before;
    if (taken >= least) continue;
    least = taken;
    best = {before + taken / 2,
            static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec)};
  }
  return best;
}

}  // namespace iosig::trace
