// Puts a pattern together from nests and vectors in order, so that every maker of patterns lays them out alike.
#pragma once

#include "iosig/model/pattern.h"

namespace iosig {

class PatternBuilder {
 public:
  PatternBuilder(std::uint32_t columns, const std::array<std::int8_t, max_columns>& follows);

  /// The next vector, `columns` numbers as stored (Pattern::follows). Blocks are closed when they are full.
  void add_literal(const std::int64_t* vector);
  /// The next `count` vectors as one nest: Node::end and Node::numbers count from the nest's own first.
  void add_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count);
  /// In order of position.
  void add_exception(std::uint64_t position, const std::int64_t* vector);
  /// Ends the block of literals at hand, so that the next one begins a new term.
  void end_block();

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] bool is_in_literals() const { return !block_.empty(); }
  /// What was added, which leaves the builder empty.
  [[nodiscard]] Pattern finish();

 private:
  Pattern pattern_;
  std::vector<std::int64_t> block_;
  std::uint64_t count_ = 0;  ///< block_ included
};

}  // namespace iosig
