// Builds a pattern from nests and vectors in order; gives all patterns the same layout.
#pragma once

#include "iosig/model/pattern.h"

namespace iosig {

class PatternBuilder {
 public:
  PatternBuilder(std::uint32_t columns, const std::array<std::int8_t, max_columns>& follows);

  /// Appends a vector, `columns` numbers as stored (Pattern::follows). Closes full blocks.
  void add_literal(const std::int64_t* vector);
  /// Appends `count` vectors as one nest; Node::end and Node::numbers are relative to the nest's first.
  void add_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count);
  /// Adds an exception. Exceptions must come in order of position.
  void add_exception(std::uint64_t position, const std::int64_t* vector);
  /// Ends the current block of literals; the next literal begins a new term.
  void end_block();

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] bool is_in_literals() const { return !block_.empty(); }
  /// Returns the pattern and empties the builder.
  [[nodiscard]] Pattern finish();

 private:
  Pattern pattern_;
  std::vector<std::int64_t> block_;
  std::uint64_t count_ = 0;  ///< including block_
};

}  // namespace iosig
