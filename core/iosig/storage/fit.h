// Service time of a device from timed chunks: t = latency + bytes / bandwidth. Pure.
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

/// The line with the smallest sum of relative errors over `points` (one for each size, ascending), since a 4 KB
/// write that is predicted twice too slow is as wrong as a 16 MB one. Absolute errors, not squares: one odd size does
/// not bend it. The optimum of such a fit passes through two of the points, so all pairs are tried.
/// Nothing with fewer than two sizes. Latency is at least 0; when times do not grow with size, the largest size alone
/// tells the bandwidth and the smallest one the latency.
[[nodiscard]] std::optional<ServiceTime> fit_service_time(std::span<const TimedSize> points);

}  // namespace iosig
