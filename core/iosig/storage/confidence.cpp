#include "iosig/storage/confidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace iosig {

double student_t95(std::size_t degrees) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (degrees <= table.size()) return table[std::max<std::size_t>(degrees, 1) - 1];
  // Cornish-Fisher expansion around the normal distribution (Abramowitz and Stegun 26.7.5).
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(degrees);
  const double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

Estimate estimate_of(std::span<const double> samples) {
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  if (samples.size() == 1) return {mean, 0, 2 * mean, 1, false};
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const double half = student_t95(samples.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {.mean = mean,
          .low = std::max(0.0, mean - half),
          .high = mean + half,
          .passes = samples.size(),
          .settled = samples.size() >= min_passes && half <= settled_share * mean};
}

Estimate mean_of(std::span<const Estimate> estimates) {
  const auto count = static_cast<double>(estimates.size());
  Estimate all;
  double squares = 0;
  for (const Estimate& each : estimates) {
    all.mean += each.mean / count;
    all.passes += each.passes;
    squares += (each.high - each.mean) * (each.high - each.mean);
  }
  const double half = std::sqrt(squares) / count;
  all.low = std::max(0.0, all.mean - half);
  all.high = all.mean + half;
  all.settled = all.passes >= min_passes && half <= settled_share * all.mean;
  return all;
}

bool settled(std::span<const double> samples) { return !samples.empty() && estimate_of(samples).settled; }

}  // namespace iosig
