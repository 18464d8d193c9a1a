// Fits the service time of a device to timed chunks: t = latency + bytes / bandwidth. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace iosig {

struct TimedSize {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

struct ServiceTime {
  double latency_s = 0;
  double bytes_per_s = 0;
  [[nodiscard]] double seconds(std::uint64_t bytes) const {
    return latency_s + static_cast<double>(bytes) / bytes_per_s;
  }
};

/// Returns the line with the smallest sum of relative errors over `points` (one per size, ascending). Relative, because
/// predicting a 4 KB write twice too slow is as wrong as for a 16 MB write; absolute instead of squared, because one
/// outlier must not bend the line. The optimum of such a fit passes through two of the points, so all pairs are tried.
/// Returns nothing with fewer than two sizes. Latency is at least 0; if times do not grow with size, bandwidth comes
/// from the largest size and latency from the smallest.
[[nodiscard]] std::optional<ServiceTime> fit_service_time(std::span<const TimedSize> points);

}  // namespace iosig
