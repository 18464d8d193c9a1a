// RegionCollector::add for patterns: the loop around each leaf that gives a region most requests becomes a
// progression.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "iosig/decide/regions.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

/// The columns of a request, and where to put requests.
struct PatternSink {
  const Pattern& pattern;
  std::size_t offset_column = 0, length_column = 1;
  bool is_write = false;
  std::uint64_t region_bytes = 1;  ///< mean
  RegionCollector& into;

  [[nodiscard]] Result<void> put(std::int64_t first, std::int64_t length, std::int64_t stride,
                                 std::int64_t count) const {
    if (count <= 0) return {};
    std::int64_t lowest = first;
    if (stride < 0) {  // the same requests from the last one on
      lowest = first + stride * (count - 1);
      stride = -stride;
    }
    if (lowest < 0 || length < 0)
      return fail(ErrorKind::bad_input, "pattern: an access of {} bytes at offset {}: neither may be negative", length,
                  lowest);
    return into.add(RequestGroup{.offset = static_cast<std::uint64_t>(lowest),
                                 .length = static_cast<std::uint64_t>(length),
                                 .stride = static_cast<std::uint64_t>(stride),
                                 .count = static_cast<std::uint64_t>(count),
                                 .is_write = is_write});
  }
};

/// Walks over a nest; the loops around the current node, outermost first.
class NestRequests {
 public:
  explicit NestRequests(const PatternSink& sink) : sink_(sink) {}

  [[nodiscard]] Result<void> visit(std::uint32_t node) {
    const Node& at = sink_.pattern.nodes[node];
    if (!at.is_loop) return leaf(at);
    loops_.push_back(node);
    for (std::uint32_t child = node + 1; child < at.end; child = sink_.pattern.nodes[child].end)
      if (auto done = visit(child); !done) return done;
    loops_.pop_back();
    return {};
  }

 private:
  [[nodiscard]] const std::int64_t* numbers(const Node& node) const {
    return sink_.pattern.numbers.data() + node.numbers;
  }

  [[nodiscard]] Result<void> leaf(const Node& node) {
    const std::size_t depth = loops_.size();
    const std::int64_t* offset = numbers(node) + sink_.offset_column * (depth + 1);
    const std::int64_t* length = numbers(node) + sink_.length_column * (depth + 1);
    longest_.reset();
    std::int64_t trips_of_longest = 0;
    std::uint64_t most = 0;
    for (std::size_t d = depth; d-- > 0;) {  // the inner loop at a tie
      const std::int64_t* trips = numbers(sink_.pattern.nodes[loops_[d]]);
      bool is_free = length[d + 1] == 0 && std::all_of(trips + 1, trips + 1 + d, [](auto n) { return n == 0; });
      for (std::size_t inner = d + 1; inner < depth; ++inner)
        is_free = is_free && numbers(sink_.pattern.nodes[loops_[inner]])[d + 1] == 0;
      const std::uint64_t turns = is_free ? turns_in_region(offset[d + 1], trips[0]) : 0;
      if (turns <= most) continue;
      most = turns;
      trips_of_longest = trips[0];
      longest_ = d;
    }
    return turn(0, offset, length, trips_of_longest);
  }

  /// Returns how many of a loop's requests one region gets at a time.
  [[nodiscard]] std::uint64_t turns_in_region(std::int64_t stride, std::int64_t trips) const {
    if (trips <= 0) return 0;
    const std::uint64_t step = stride < 0 ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
    const auto all = static_cast<std::uint64_t>(trips);
    return step == 0 ? all : std::min(all, sink_.region_bytes / step + 1);
  }

  /// Enumerates the loops from depth `d` on but the longest.
  [[nodiscard]] Result<void> turn(std::size_t d, const std::int64_t* offset, const std::int64_t* length,
                                  std::int64_t count) {
    if (d == loops_.size()) {
      const std::int64_t first = affine(offset, index_.data(), d);
      return sink_.put(first, affine(length, index_.data(), d), longest_ ? offset[*longest_ + 1] : 0,
                       longest_ ? count : 1);
    }
    index_[d] = 0;
    if (longest_ == d) return turn(d + 1, offset, length, count);
    const std::int64_t trips = affine(numbers(sink_.pattern.nodes[loops_[d]]), index_.data(), d);
    for (std::int64_t n = 0; n < trips; ++n) {
      index_[d] = n;
      if (auto done = turn(d + 1, offset, length, count); !done) return done;
    }
    return {};
  }

  const PatternSink& sink_;
  std::vector<std::uint32_t> loops_;
  std::array<std::int64_t, max_nest_depth> index_{};
  std::optional<std::size_t> longest_;
};

/// Adds the elements from `first` on one by one.
Result<void> add_each(const PatternSink& sink, const PatternIndex& index, std::uint64_t first, std::uint64_t count) {
  PatternCursor cursor(index, first);
  std::array<std::int64_t, max_columns> vector{};
  for (std::uint64_t n = 0; n < count; ++n) {
    cursor.next(std::span(vector).first(sink.pattern.columns));
    if (auto done = sink.put(vector[sink.offset_column], vector[sink.length_column], 0, 1); !done) return done;
  }
  return {};
}

/// Takes away what the nest `term` has at an exception's position, by `drop`, and adds the exception.
template <class Drop>
Result<void> replace(const PatternSink& sink, const Term& term, std::size_t exception, Drop&& drop) {
  const Pattern& pattern = sink.pattern;
  NestWalk walk;
  walk.seek(view_of(pattern), static_cast<std::uint32_t>(term.at), pattern.exception_positions[exception] - term.first);
  std::array<std::int64_t, max_columns> vector{};
  walk.values(vector.data());
  drop(static_cast<std::uint64_t>(vector[sink.offset_column]), static_cast<std::uint64_t>(vector[sink.length_column]));
  const std::int64_t* values = pattern.exception_values.data() + exception * pattern.columns;
  return sink.put(values[sink.offset_column], values[sink.length_column], 0, 1);
}

}  // namespace

Result<void> RegionCollector::add(const Pattern& accesses, bool is_write) {
  PatternSink sink{.pattern = accesses, .is_write = is_write, .into = *this};
  if (!ends_.empty()) sink.region_bytes = ends_.back() / ends_.size();
  for (std::size_t column = 0; column < accesses.columns; ++column) {
    if (accesses.kinds[column] == Column::logical) sink.offset_column = column;
    if (accesses.kinds[column] == Column::length) sink.length_column = column;
  }
  if (accesses.columns < 2 || sink.offset_column == sink.length_column)
    return fail(ErrorKind::bad_input, "pattern: expected the columns logical and length");
  const bool follows = accesses.follows[sink.offset_column] >= 0 || accesses.follows[sink.length_column] >= 0;
  const PatternIndex index(accesses);
  std::size_t exception = 0;
  for (const Term& term : accesses.terms) {
    const bool is_nest = term.is_nest && !follows;
    auto done = is_nest ? NestRequests(sink).visit(static_cast<std::uint32_t>(term.at))
                        : add_each(sink, index, term.first, term.count);
    for (; done && exception < accesses.exception_positions.size() &&
           accesses.exception_positions[exception] < term.first + term.count;
         ++exception)
      if (is_nest)
        done =
            replace(sink, term, exception, [&](auto offset, auto length) { split(offset, length, is_write, false); });
    if (!done) return done;
  }
  return {};
}

}  // namespace iosig
