// The columns of a nest's leaves as affine forms of its loops, running sums included.
//
// A column that follows another one (Pattern::follows) is affine if trip counts are constant and every leaf adds a
// constant, because each turn of a loop then adds the same.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig {

/// base + of[0] i0 + of[1] i1 + .., the outermost loop first; modulo 2^64.
struct AffineForm {
  std::int64_t base = 0;
  std::array<std::int64_t, max_nest_depth> of{};
};

/// The forms of one nest. Refers to the pattern and the index.
class NestForms {
 public:
  /// `columns`: the columns for which form() will be called.
  NestForms(const PatternIndex& index, std::uint32_t term, std::span<const int> columns);

  [[nodiscard]] std::uint32_t root() const { return root_; }
  /// Returns whether no trip count depends on a loop.
  [[nodiscard]] bool is_constant() const { return is_constant_; }
  /// Returns the number of elements of one turn of `loop`. Requires is_constant().
  [[nodiscard]] std::uint64_t turn_count(std::uint32_t loop) const { return turn_count_[loop - root_]; }
  /// Returns the number of elements of `node`. Requires is_constant().
  [[nodiscard]] std::uint64_t count(std::uint32_t node) const;

  /// Returns the form of `column` in `leaf`, which lies in the loops `path` and whose first element is at
  /// `first_position`, or nothing if it is not affine. Column -1 is 0.
  [[nodiscard]] std::optional<AffineForm> form(int column, std::uint32_t leaf, std::span<const std::uint32_t> path,
                                               std::uint64_t first_position) const;

 private:
  [[nodiscard]] const std::int64_t* numbers(std::uint32_t node) const {
    return pattern_.numbers.data() + pattern_.nodes[node].numbers;
  }
  [[nodiscard]] bool is_constant(std::uint32_t loop, std::size_t depth) const;
  std::uint64_t count_turns(std::uint32_t loop);
  std::optional<std::uint64_t> sum(std::uint32_t node, std::size_t depth, int column, std::vector<std::uint64_t>& sums);

  const Pattern& pattern_;
  const PatternIndex& index_;
  std::uint32_t root_;
  bool is_constant_;
  std::vector<std::uint64_t> turn_count_;                          ///< by node, from root_ on
  std::array<std::vector<std::uint64_t>, max_columns> turn_sums_;  ///< as turn_count_, by column
};

}  // namespace iosig
