// A pattern: an ordered, lossless description of a sequence of vectors (offsets, lengths, ...) as loop nests.
//
// for i < 3 { for j < 2 + i { (100 i + 8 j, 8) } } stands for 9 vectors of 2 columns, and takes the same few numbers
// however often the loops turn. What has no structure is kept as literals (model/literals). Plain data in flat vectors;
// analyze/detect makes them, format/pattern_* writes and reads them.
//
// Source: docs/references.md#pattern sections 2.3 and 4.2. Its pattern unit is the nest of one column, one loop and
// some leaves (model/pattern_unit), its pattern tree a deeper one. Ours: vectors, trip counts that depend on outer
// loops (Ketterlin and Clauss 2008), exceptions, columns that follow others.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

inline constexpr std::uint32_t max_columns = 8;
inline constexpr std::uint32_t max_nest_depth = 32;       ///< loops around a leaf
inline constexpr std::uint32_t max_affine_depth = 4;      ///< of those, loops whose trip count depends on others
inline constexpr std::uint64_t max_elements = INT64_MAX;  ///< in a pattern

/// What the numbers of a column are (model/access_columns has their names). `any`: nobody said.
enum class Column : std::uint8_t { any, logical, length, physical, id, sequence };
inline constexpr std::uint8_t column_kinds = 6;

/// A loop or a leaf of a nest. Nodes lie in preorder: a loop's body begins at the next node and ends before `end`.
///
/// `numbers` is the first of the node's numbers in Pattern::numbers. With d loops around the node, a loop has d + 1 of
/// them, its trip count n0 + n1 i1 + .. + nd id, where i1 is the outermost loop's index, counted from 0. A leaf has
/// d + 1 such numbers for each column, column after column.
struct Node {
  bool is_loop = false;
  std::uint32_t end = 0;  ///< the node after this one and all that is in it
  std::uint32_t numbers = 0;

  bool operator==(const Node&) const = default;
};

/// A stretch of the sequence: one nest, its root a loop, or one block of literals.
struct Term {
  bool is_nest = false;
  std::uint64_t first = 0;  ///< position of its first element in the sequence
  std::uint64_t count = 0;  ///< of its elements, never 0
  std::uint64_t at = 0;  ///< of a nest: its root in Pattern::nodes; of literals: their first byte in Pattern::literals

  bool operator==(const Term&) const = default;
};

/// Invariant (checked() says whether it holds; detectors and readers give nothing else):
/// - 1 to max_columns columns; terms in order without gaps; nodes, numbers and bytes in the order of the terms, each
///   used once.
/// - No column but `any` comes twice.
/// - Every number that a leaf or a trip count takes lies in int64, as a true integer: nothing wraps. No trip count is
///   ever negative, none is always 0, depths are at most the above, trip
///   counts depend on few enough loops to be summed up, and a nest has at most 1000 iterations per element
///   (so that whatever is walked is worth it).
/// - Exceptions in order of position, at most one for each, and inside nests.
struct Pattern {
  std::uint32_t columns = 1;
  std::array<Column, max_columns> kinds{};  ///< of the columns; the others are `any`
  /// Of column c: -1, or the column s whose running sum it is but for what the terms say. Terms, literals and
  /// exceptions then hold value[n][c] - value[n-1][c] - value[n-1][s] (value[0][c] for n = 0) instead of value[n][c];
  /// modulo 2^64, the one place that wraps. So the physical offset of a log costs nothing, whatever the lengths are.
  /// s itself follows none.
  std::array<std::int8_t, max_columns> follows = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::vector<Term> terms;
  std::vector<Node> nodes;
  std::vector<std::int64_t> numbers;
  std::vector<std::uint8_t> literals;
  std::vector<std::uint64_t> exception_positions;  ///< in the sequence
  std::vector<std::int64_t> exception_values;      ///< `columns` each: what stands there instead of the nest's vector

  [[nodiscard]] std::uint64_t count() const { return terms.empty() ? 0 : terms.back().first + terms.back().count; }
  [[nodiscard]] bool follows_any() const;
  bool operator==(const Pattern&) const = default;
};

/// Nothing, or `bad_input` with the term and what is wrong with it. Takes time and memory by the size of the
/// description, not by what it stands for.
[[nodiscard]] Result<void> checked(const Pattern& pattern);

/// Elements in the iterations before `index` of the loop at `node` when the loops around it are at `outer`, outermost
/// first. Closed form, for constant and affine trip counts alike.
[[nodiscard]] std::uint64_t count_before(const Pattern& pattern, std::uint32_t node,
                                         std::span<const std::int64_t> outer, std::int64_t index);

/// Random access. Where a column follows another one, it takes time and 64 bytes for each term and exception to make,
/// else nothing. Refers to the pattern.
class PatternIndex {
 public:
  explicit PatternIndex(const Pattern& pattern);

  [[nodiscard]] const Pattern& pattern() const { return *pattern_; }
  /// The vector at `position` < count(), into `out` (`columns` of them). Logarithmic in terms and exceptions; within a
  /// nest a division for each loop, or a binary search where trip counts are affine; within literals up to a block.
  void element(std::uint64_t position, std::span<std::int64_t> out) const;
  /// As the terms say: a column that follows another one is left as its difference. For those who look at nests.
  void stored_element(std::uint64_t position, std::span<std::int64_t> out) const;

 private:
  /// Of each column as stored, over all that is before.
  struct Sums {
    std::array<std::uint64_t, max_columns> of{};
  };
  [[nodiscard]] Sums sums_before(std::uint64_t position) const;

  const Pattern* pattern_;
  std::vector<Sums> before_term_;
  std::vector<Sums> before_exception_;  ///< what the exceptions before add
};

}  // namespace iosig
