// Appends whole nests and vectors and folds repetitions into loops.
//
// The counterpart of analyze/detect for patterns that were detected before: the nests of a thousand ranks become one in
// a thousand steps.
#pragma once

#include "iosig/analyze/term_stack.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {

class NestFolder {
 public:
  explicit NestFolder(std::uint32_t columns);

  /// Appends a nest of `count` vectors that begins at node 0 and number 0.
  void push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count);
  /// Adds an exception: `vector` replaces element `within` of the last nest. Exceptions must come in order.
  void push_exception(std::uint64_t within, const std::int64_t* vector);
  /// Appends vectors of `columns` numbers each. Takes a large number of them at once to have no structure.
  void push_vectors(std::span<const std::int64_t> vectors);
  /// Appends `pattern`, which must have as many columns, none of which follows another.
  void push_pattern(const Pattern& pattern);

  /// Returns the pattern of everything pushed and resets the folder.
  [[nodiscard]] Pattern finish();

 private:
  void fold();

  std::uint32_t columns_;
  std::uint64_t position_ = 0, last_nest_ = 0;
  TermStack stack_;
  Exceptions exceptions_;
  PatternBuilder builder_;
  std::vector<std::int64_t> block_;
};

}  // namespace iosig
