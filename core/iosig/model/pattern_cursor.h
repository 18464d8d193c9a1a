// Walks a pattern from any position, one vector after the other, without expanding it.
#pragma once

#include <memory>

#include "iosig/model/nest.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Amortised constant time for each vector; allocates only when it is made. Refers to the pattern.
class PatternCursor {
 public:
  explicit PatternCursor(const Pattern& pattern);
  /// Begins at `position` <= count().
  PatternCursor(const PatternIndex& index, std::uint64_t position);

  /// The next vector into `out` (`columns` of them); false at the end, which leaves `out` alone.
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

/// All of it, vector after vector: count() * columns numbers. For patterns known to be small; `bad_input` above
/// `limit` vectors.
[[nodiscard]] Result<std::vector<std::int64_t>> expanded(const Pattern& pattern, std::uint64_t limit = 1u << 30);

/// The next `count` vectors if the last nest went on: its outermost loop turns further. Elements after that nest count
/// as the beginning of its next iteration if they are one. Nothing when there is no nest at the end, and no more than
/// lie in int64. [0,(3,4,7)^2] goes on with 28, 31, 35, ...: the paper's section 4.2 prints 31, 35, 42, taking 28 for
/// known (its r |d| + 1 numbers).
[[nodiscard]] std::vector<std::int64_t> predicted(const Pattern& pattern, std::size_t count);

}  // namespace iosig
