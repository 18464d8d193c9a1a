// One loop nest: iteration, closed-form counting of its elements, and bounds of its numbers.
//
// The arithmetic for model/pattern.h and analyze/detect, which store nests as the same nodes and numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "iosig/model/pattern.h"

namespace iosig {

/// Refers to nodes and numbers. Roots are at depth 0: none of their numbers depends on a loop.
struct NestView {
  const Node* nodes = nullptr;
  const std::int64_t* numbers = nullptr;
  std::uint32_t columns = 1;
};
[[nodiscard]] inline NestView view_of(const Pattern& pattern) {
  return {pattern.nodes.data(), pattern.numbers.data(), pattern.columns};
}

/// Returns n0 + n1 i1 + .. + nd id modulo 2^64; exact if the value fits int64.
[[nodiscard]] inline std::int64_t affine(const std::int64_t* numbers, const std::int64_t* indices, std::size_t depth) {
  auto value = static_cast<std::uint64_t>(numbers[0]);
  for (std::size_t d = 0; d < depth; ++d)
    value += static_cast<std::uint64_t>(numbers[d + 1]) * static_cast<std::uint64_t>(indices[d]);
  return static_cast<std::int64_t>(value);
}

/// An odometer: iterates over the leaves of a nest with the indices of the loops around them. Never allocates.
class NestWalk {
 public:
  /// Moves to the first leaf from iteration `index` on of the loop `root`, which turns `trips` times; at_end() if there
  /// is none.
  void start(const NestView& nest, std::uint32_t root, std::int64_t index, std::int64_t trips);
  /// Moves to element `offset`, which must exist.
  void seek(const NestView& nest, std::uint32_t root, std::uint64_t offset);
  /// Moves to the next leaf; at_end() after the last.
  void advance() { settle(nest_.nodes[leaf_].end); }
  /// Continues the outermost loop, which is at its end, up to `trips` turns.
  void go_on(std::int64_t trips);

  [[nodiscard]] bool at_end() const { return depth_ == 0; }
  /// Stores the vector of the leaf, `columns` numbers.
  void values(std::int64_t* out) const {
    const std::int64_t* numbers = nest_.numbers + nest_.nodes[leaf_].numbers;
    for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth_ + 1)
      out[column] = affine(numbers, index_.data(), depth_);
  }

  /// Returns the number of leaves in the innermost loop's body if the body consists of leaves only and the walk is at
  /// the first, otherwise 0.
  [[nodiscard]] std::uint32_t round() const {
    const std::uint32_t loop = loop_[depth_ - 1], end = nest_.nodes[loop].end;
    if (leaf_ != loop + 1) return 0;
    for (std::uint32_t node = leaf_; node < end; ++node)
      if (nest_.nodes[node].is_loop) return 0;
    return end - leaf_;
  }
  /// Returns the turns that the innermost loop has left, including this one.
  [[nodiscard]] std::int64_t turns_left() const { return trips_[depth_ - 1] - index_[depth_ - 1]; }
  /// Stores the vector of leaf `n` of a round, and its change from turn to turn.
  void round_values(std::uint32_t n, std::int64_t* out, std::int64_t* steps) const {
    const std::int64_t* numbers = nest_.numbers + nest_.nodes[leaf_ + n].numbers;
    for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth_ + 1) {
      out[column] = affine(numbers, index_.data(), depth_);
      steps[column] = numbers[depth_];
    }
  }
  /// Advances by `vectors` from the first leaf of a round of `size` leaves, within the turns left.
  void skip(std::uint64_t vectors, std::uint32_t size) {
    index_[depth_ - 1] += static_cast<std::int64_t>(vectors / size);
    leaf_ += static_cast<std::uint32_t>(vectors % size);
  }

  [[nodiscard]] std::uint32_t leaf() const { return leaf_; }
  [[nodiscard]] std::uint32_t depth() const { return depth_; }  ///< loops around the leaf
  [[nodiscard]] std::uint32_t loop(std::size_t depth) const { return loop_[depth]; }
  [[nodiscard]] std::int64_t index(std::size_t depth) const { return index_[depth]; }
  [[nodiscard]] const std::int64_t* indices() const { return index_.data(); }

 private:
  void settle(std::uint32_t node);
  void seek_constant(std::uint64_t left);
  void enter(std::uint32_t node, std::int64_t index, std::int64_t trips) {
    loop_[depth_] = node;
    index_[depth_] = index;
    trips_[depth_++] = trips;
  }

  NestView nest_;
  std::uint32_t root_ = 0, leaf_ = 0, depth_ = 0;
  std::array<std::uint32_t, max_nest_depth> loop_;
  std::array<std::int64_t, max_nest_depth> index_, trips_;
};

/// Returns the number of elements of `node` when the loops around it are at `outer`, outermost first. For checked
/// nests.
[[nodiscard]] std::uint64_t count_of(const NestView& nest, std::uint32_t node, std::span<const std::int64_t> outer);
/// Returns the number of elements in the iterations of the loop `node` before `index`.
[[nodiscard]] std::uint64_t count_before(const NestView& nest, std::uint32_t node, std::span<const std::int64_t> outer,
                                         std::int64_t index);

/// Returns the sum of each column over the first `count` elements of the nest `root`, modulo 2^64. Closed form.
[[nodiscard]] std::array<std::uint64_t, max_columns> sums_of(const NestView& nest, std::uint32_t root,
                                                             std::uint64_t count);

/// Returns the fault of the nest `root` with respect to Pattern's invariant, or "". Assumes valid indices into nodes
/// and numbers. `trips` replaces the trip count of the root, if given.
[[nodiscard]] std::string fault_of(const NestView& nest, std::uint32_t root,
                                   std::optional<std::int64_t> trips = std::nullopt);

}  // namespace iosig
