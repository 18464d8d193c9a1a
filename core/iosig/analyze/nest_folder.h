// Puts whole nests and vectors one after the other and folds those that repeat into loops.
//
// What analyze/detect is for vectors, this is for patterns that were detected before: a thousand ranks' nests become
// one in as many steps.
#pragma once

#include "iosig/analyze/term_stack.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {

class NestFolder {
 public:
  explicit NestFolder(std::uint32_t columns);

  /// The next `count` vectors, a nest that begins at node 0 and number 0.
  void push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count);
  /// A vector that stands in the place of number `within` of the last nest. In order.
  void push_exception(std::uint64_t within, const std::int64_t* vector);
  /// The next vectors, `columns` numbers each. Many of them at once are taken to have no structure.
  void push_vectors(std::span<const std::int64_t> vectors);
  /// `pattern`: of as many columns, none of which follows another one.
  void push_pattern(const Pattern& pattern);

  /// What was pushed. The folder is as new afterwards.
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
