// A pattern: an ordered, lossless description of a sequence of vectors (offsets, lengths, ...) as loop nests.
//
// Example: for i < 3 { for j < 2 + i { (100 i + 8 j, 8) } } describes 9 vectors of 2 columns, with the same few numbers
// however often the loops turn. Vectors without structure are kept as literals (model/literals). Plain data in flat
// vectors, created by analyze/detect, written and read by format/pattern_*.
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

/// The meaning of a column's numbers (names: model/access_columns). `any`: unspecified.
enum class Column : std::uint8_t { any, logical, length, physical, id, sequence };
inline constexpr std::uint8_t column_kinds = 6;

/// A loop or a leaf of a nest. Nodes are in preorder: a loop's body begins at the next node and ends before `end`.
///
/// `numbers` is the first of the node's numbers in Pattern::numbers. With d loops around the node, a loop has d + 1 of
/// them, its trip count n0 + n1 i1 + .. + nd id, where i1 is the outermost loop's index, counted from 0. A leaf has
/// d + 1 such numbers for each column, column after column.
struct Node {
  bool is_loop = false;
  std::uint32_t end = 0;  ///< the node after this one and everything in it
  std::uint32_t numbers = 0;

  bool operator==(const Node&) const = default;
};

/// A part of the sequence: one nest, whose root is a loop, or one block of literals.
struct Term {
  bool is_nest = false;
  std::uint64_t first = 0;  ///< position of its first element in the sequence
  std::uint64_t count = 0;  ///< of its elements, never 0
  std::uint64_t at = 0;     ///< of a nest: its root in Pattern::nodes; of literals: the first byte in Pattern::literals

  bool operator==(const Term&) const = default;
};

/// Invariant (verified by checked(), guaranteed by detectors and readers):
/// - 1 to max_columns columns; terms in order without gaps; nodes, numbers and bytes in the order of the terms, each
///   used once.
/// - No column kind except `any` occurs twice.
/// - Every value of a leaf or a trip count fits int64 without wrapping. No trip count is ever negative, none is always
///   0, depths are within the limits above, trip counts depend on few enough loops for closed-form sums, and a nest
///   has at most 1000 iterations per element, which bounds the cost of walking it.
/// - Exceptions are sorted by position, at most one per position, and inside nests.
struct Pattern {
  std::uint32_t columns = 1;
  std::array<Column, max_columns> kinds{};  ///< of the columns; the others are `any`
  /// Of column c: -1, or the column s whose running sum c is, up to the values in the terms. Terms, literals and
  /// exceptions then store value[n][c] - value[n-1][c] - value[n-1][s] (value[0][c] for n = 0) instead of value[n][c],
  /// modulo 2^64; nothing else wraps. The physical offset of a log thus costs nothing for any lengths. Column s itself
  /// follows none.
  std::array<std::int8_t, max_columns> follows = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::vector<Term> terms;
  std::vector<Node> nodes;
  std::vector<std::int64_t> numbers;
  std::vector<std::uint8_t> literals;
  std::vector<std::uint64_t> exception_positions;  ///< in the sequence
  std::vector<std::int64_t> exception_values;      ///< `columns` each: the vector that replaces the nest's

  [[nodiscard]] std::uint64_t count() const { return terms.empty() ? 0 : terms.back().first + terms.back().count; }
  [[nodiscard]] bool follows_any() const;
  bool operator==(const Pattern&) const = default;
};

/// Returns nothing, or `bad_input` with the term and its fault. Takes time and memory proportional to the description,
/// not to the sequence.
[[nodiscard]] Result<void> checked(const Pattern& pattern);

/// Returns the number of elements in the iterations before `index` of the loop at `node` when the loops around it are
/// at `outer`, outermost first. Closed form, for constant and affine trip counts alike.
[[nodiscard]] std::uint64_t count_before(const Pattern& pattern, std::uint32_t node,
                                         std::span<const std::int64_t> outer, std::int64_t index);

/// Random access. If a column follows another one, construction takes time and 64 bytes per term and exception,
/// otherwise none. Refers to the pattern.
class PatternIndex {
 public:
  explicit PatternIndex(const Pattern& pattern);

  [[nodiscard]] const Pattern& pattern() const { return *pattern_; }
  /// Stores the vector at `position` < count() to `out` (`columns` numbers). Logarithmic in terms and exceptions;
  /// within a nest one division per loop, or a binary search for affine trip counts; within literals up to one block.
  void element(std::uint64_t position, std::span<std::int64_t> out) const;
  /// As element(), but leaves a column that follows another one as its stored difference. For code that inspects nests.
  void stored_element(std::uint64_t position, std::span<std::int64_t> out) const;

 private:
  /// Per column as stored, summed over everything before.
  struct Sums {
    std::array<std::uint64_t, max_columns> of{};
  };
  [[nodiscard]] Sums sums_before(std::uint64_t position) const;

  const Pattern* pattern_;
  std::vector<Sums> before_term_;
  std::vector<Sums> before_exception_;  ///< the contribution of earlier exceptions
};

}  // namespace iosig
