#include "iosig/storage/fit.h"

#include <cmath>
#include <limits>

namespace iosig {

std::optional<ServiceTime> fit_service_time(std::span<const TimedSize> points) {
  if (points.size() < 2) return std::nullopt;
  const TimedSize& largest = points.back();
  ServiceTime best{points.front().seconds, static_cast<double>(largest.bytes) / largest.seconds};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const double more_s = points[j].seconds - points[i].seconds;
      if (!(more_s > 0)) continue;
      ServiceTime line;
      line.bytes_per_s = static_cast<double>(points[j].bytes - points[i].bytes) / more_s;
      line.latency_s = points[i].seconds - static_cast<double>(points[i].bytes) / line.bytes_per_s;
      if (!(line.latency_s > 0)) continue;
      double error = 0;
      for (const TimedSize& point : points) error += std::abs(line.seconds(point.bytes) / point.seconds - 1);
      if (error < least) {
        least = error;
        best = line;
      }
    }
  return best;
}

}  // namespace iosig
