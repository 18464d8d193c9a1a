#include <algorithm>

#include "iosig/model/nest.h"
#include "iosig/model/nest_count.h"

namespace iosig {
namespace {

using namespace nest_count;

constexpr std::uint64_t max_evaluations = 1024;  ///< of a nest's leaves, for counting it

bool is_constant(const NestView& nest, std::uint32_t loop, std::size_t depth) {
  const std::int64_t* numbers = nest.numbers + nest.nodes[loop].numbers;
  return std::all_of(numbers + 1, numbers + 1 + depth, [](std::int64_t n) { return n == 0; });
}

/// Checks a nest from the outside in: bounds are computed only over loops that are known to be valid.
class Checker {
 public:
  Checker(const NestView& nest, std::uint32_t root, std::optional<std::int64_t> trips) : nest_(nest), root_(root) {
    trips_[0] = trips ? &*(root_trips_ = trips) : nest.numbers + nest.nodes[root].numbers;
  }

  std::string fault() {
    if (!nest_.nodes[root_].is_loop) return "a nest must begin with a loop";
    if (std::string found = loop_fault(root_, 0, 0); !found.empty()) return found;
    if (evaluations(nest_, root_, 0, max_evaluations) >= max_evaluations)
      return "trip counts that depend on too many loops";
    Indices at{};
    const Tally total = differences_of(nest_, root_, at, 0, *trips_[0]).sum(*trips_[0]);
    if (total.overflow || total.elements > static_cast<__int128>(max_elements)) return "more than 2^63 - 1 elements";
    if (total.iterations > 1000 * total.elements) return "more than 1000 iterations for each element";
    return "";
  }

 private:
  struct Range {
    __int128 low = 0, high = 0;
    bool overflow = false;
  };

  /// Computes the least or the greatest value of n0 + n1 i1 + .. + nd id. It is linear in the innermost index, so its
  /// extremes are at the ends of that index's range, which is affine in the other indices.
  bool extreme(const std::int64_t* numbers, std::size_t depth, bool greatest, __int128& value) const {
    std::array<__int128, max_nest_depth + 1> form{};
    std::copy(numbers, numbers + depth + 1, form.begin());
    for (std::size_t d = depth; d > 0; --d) {
      const __int128 slope = form[d];
      if (greatest ? slope <= 0 : slope >= 0) continue;  // at index 0
      for (std::size_t e = 0; e < d; ++e) {              // at index trips - 1
        __int128 part = trips_[d - 1][e];
        if (e == 0) part -= 1;
        if (__builtin_mul_overflow(part, slope, &part) || __builtin_add_overflow(form[e], part, &form[e])) return false;
      }
    }
    value = form[0];
    return true;
  }

  [[nodiscard]] Range range(const std::int64_t* numbers, std::size_t depth) const {
    Range found;
    found.overflow = !extreme(numbers, depth, false, found.low) || !extreme(numbers, depth, true, found.high);
    return found;
  }

  std::string loop_fault(std::uint32_t loop, std::size_t depth, unsigned affine_loops) {
    if (depth >= max_nest_depth) return fmt::format("more than {} loops in each other", max_nest_depth);
    if (depth > 0) trips_[depth] = nest_.numbers + nest_.nodes[loop].numbers;
    if (depth > 0 && !is_constant(nest_, loop, depth) && ++affine_loops > max_affine_depth)
      return fmt::format("more than {} loops in each other whose trip count depends on others", max_affine_depth);
    const Range trips = range(trips_[depth], depth);
    if (trips.overflow || trips.high > INT64_MAX) return "a trip count above 2^63 - 1";
    if (trips.low < 0) return "a trip count that falls below 0";
    if (trips.high == 0) return "a loop that never turns";
    if (nest_.nodes[loop].end <= loop + 1) return "a loop without a body";
    for (std::uint32_t child = loop + 1; child < nest_.nodes[loop].end; child = nest_.nodes[child].end) {
      std::string found =
          nest_.nodes[child].is_loop ? loop_fault(child, depth + 1, affine_loops) : leaf_fault(child, depth + 1);
      if (!found.empty()) return found;
    }
    return "";
  }

  [[nodiscard]] std::string leaf_fault(std::uint32_t leaf, std::size_t depth) const {
    const std::int64_t* numbers = nest_.numbers + nest_.nodes[leaf].numbers;
    for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth + 1) {
      const Range values = range(numbers, depth);
      if (values.overflow || values.low < INT64_MIN || values.high > INT64_MAX)
        return fmt::format("values of column {} that do not fit 64 bits", column + 1);
    }
    return "";
  }

  NestView nest_;
  std::uint32_t root_;
  std::optional<std::int64_t> root_trips_;
  std::array<const std::int64_t*, max_nest_depth> trips_{};
};

}  // namespace

namespace {

/// Returns whether a loop around vectors alone is certainly valid: its values are extreme in the first and the last
/// turn.
bool is_sound_row(const NestView& nest, std::uint32_t root, std::int64_t trips) {
  const std::uint32_t end = nest.nodes[root].end, leaves = end - root - 1;
  if (!nest.nodes[root].is_loop || leaves < 1 || trips < 1) return false;
  if (static_cast<std::uint64_t>(trips) > max_elements / leaves) return false;
  for (std::uint32_t leaf = root + 1; leaf < end; ++leaf) {
    if (nest.nodes[leaf].is_loop) return false;
    const std::int64_t* numbers = nest.numbers + nest.nodes[leaf].numbers;
    for (std::uint32_t column = 0; column < nest.columns; ++column, numbers += 2) {
      std::int64_t last = 0;
      if (__builtin_mul_overflow(numbers[1], trips - 1, &last) || __builtin_add_overflow(numbers[0], last, &last))
        return false;
    }
  }
  return true;
}

}  // namespace

std::string fault_of(const NestView& nest, std::uint32_t root, std::optional<std::int64_t> trips) {
  if (is_sound_row(nest, root, trips.value_or(nest.numbers[nest.nodes[root].numbers]))) return "";
  return Checker(nest, root, trips).fault();
}

}  // namespace iosig
