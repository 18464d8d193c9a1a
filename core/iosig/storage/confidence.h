// The mean of repeated passes, and how well it is known: Student's t. Pure.
//
// A measurement repeats its passes until settled() holds, so a quiet device takes little time and a noisy one gets more
// passes. Source: W. S. Gosset ("Student"), "The probable error of a mean", Biometrika 6 (1908).
#pragma once

#include <cstddef>
#include <span>

namespace iosig {

/// A mean with its 95 % confidence interval, low to high. `passes`: of how many samples.
struct Estimate {
  double mean = 0, low = 0, high = 0;
  std::size_t passes = 0;
  bool settled = false;  ///< the interval lies within ±5 % of the mean
};

/// The passes that are made of each quantity at least, and the half width of the interval, as a share of the mean, at
/// which they end.
inline constexpr std::size_t min_passes = 5;
inline constexpr double settled_share = 0.05;

/// Returns the factor of the standard error in a two-sided 95 % confidence interval with `degrees` >= 1 degrees of
/// freedom: 12.71 for 1, 2.776 for 4, 1.96 in the limit. Exact to 0.1 %.
[[nodiscard]] double student_t95(std::size_t degrees);

/// Returns the mean of the samples with its interval. The low end is at least 0, since samples are times. One sample
/// has the interval from 0 to twice its value: nothing is known of its spread. `samples` must not be empty.
[[nodiscard]] Estimate estimate_of(std::span<const double> samples);

/// Returns the mean of independent estimates, each of which counts once, however many passes it has: slow ones make
/// fewer. `estimates` must not be empty.
[[nodiscard]] Estimate mean_of(std::span<const Estimate> estimates);

/// Returns whether there are at least `min_passes` samples, and their mean is known to ±5 %.
[[nodiscard]] bool settled(std::span<const double> samples);

}  // namespace iosig
