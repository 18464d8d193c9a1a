// Iterates over the vectors of a pattern from any position without expanding it.
#pragma once

#include <memory>

#include "iosig/model/nest.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Takes amortised constant time per vector; allocates only on construction. Refers to the pattern.
class PatternCursor {
 public:
  explicit PatternCursor(const Pattern& pattern);
  /// Starts at `position` <= count().
  PatternCursor(const PatternIndex& index, std::uint64_t position);

  /// Stores the next vector to `out` (`columns` numbers). Returns false at the end and leaves `out` unchanged.
  bool next(std::span<std::int64_t> out);
  [[nodiscard]] std::uint64_t position() const { return position_; }

 private:
  void open_term();

  const Pattern* pattern_;
  std::uint64_t position_ = 0;
  std::size_t term_ = 0, exception_ = 0;
  NestWalk walk_;
  std::vector<std::int64_t> block_;  ///< the literals of the current term
  std::array<std::int64_t, max_columns> previous_{};
};

/// Expands the whole pattern: count() * columns numbers. For patterns known to be small; fails with `bad_input` above
/// `limit` vectors.
[[nodiscard]] Result<std::vector<std::int64_t>> expanded(const Pattern& pattern, std::uint64_t limit = 1u << 30);

/// Returns the next `count` vectors, assuming that the outermost loop of the last nest continues. Elements after that
/// nest must be the beginning of its next iteration. Returns nothing if there is no such nest, and stops before values
/// exceed int64. Example: [0,(3,4,7)^2] continues with 28, 31, 35, ...; the paper's section 4.2 prints 31, 35, 42
/// because it considers 28 known (its r |d| + 1 numbers).
[[nodiscard]] std::vector<std::int64_t> predicted(const Pattern& pattern, std::size_t count);

}  // namespace iosig
