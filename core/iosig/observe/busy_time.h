// How long anything was in flight, and how much at the same time: a sweep over intervals in the order of their starts.
//
// Example: [0, 10), [5, 15) and [20, 30) are busy for 25, with at most 2 in flight; the mean while busy is 30 / 25.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace iosig::observe {

/// Adds a duration to a sum, which stays at INT64_MAX (292 years) instead of overflowing.
inline void add_duration(std::int64_t& sum_ns, std::int64_t duration_ns) {
  if (__builtin_add_overflow(sum_ns, duration_ns, &sum_ns)) sum_ns = INT64_MAX;
}

class BusyTime {
 public:
  /// Starts must not decrease; `end` >= `start`. An interval includes its start and not its end; an empty one is in
  /// flight at its start.
  void add(std::int64_t start, std::int64_t end);

  /// The length of the union of the intervals.
  [[nodiscard]] std::int64_t busy() const { return busy_; }
  /// The sum of their lengths; at most INT64_MAX.
  [[nodiscard]] std::int64_t total() const { return total_; }
  /// The greatest number of intervals that are in flight at one time.
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  std::int64_t busy_ = 0, total_ = 0, covered_until_ = INT64_MIN;
  std::size_t most_ = 0;
  /// The ends of intervals in flight, and whether these are empty; a heap, the least first.
  std::vector<std::pair<std::int64_t, bool>> ends_;
};

}  // namespace iosig::observe
