#include "iosig/model/pattern_builder.h"

#include <utility>

#include "iosig/model/literals.h"

namespace iosig {

PatternBuilder::PatternBuilder(std::uint32_t columns, const std::array<std::int8_t, max_columns>& follows) {
  pattern_.columns = columns;
  pattern_.follows = follows;
  block_.reserve(block_vectors * columns);
}

void PatternBuilder::add_literal(const std::int64_t* vector) {
  for (std::uint32_t column = 0; column < pattern_.columns; ++column) block_.push_back(vector[column]);
  ++count_;
  if (block_.size() == block_vectors * pattern_.columns) end_block();
}

void PatternBuilder::end_block() {
  if (block_.empty()) return;
  const std::uint64_t vectors = block_.size() / pattern_.columns;
  pattern_.terms.push_back({false, count_ - vectors, vectors, pattern_.literals.size()});
  append_block(block_, pattern_.columns, pattern_.literals);
  block_.clear();
}

void PatternBuilder::add_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count) {
  end_block();
  const auto first_node = static_cast<std::uint32_t>(pattern_.nodes.size());
  const auto first_number = static_cast<std::uint32_t>(pattern_.numbers.size());
  pattern_.terms.push_back({true, count_, count, first_node});
  for (const Node& node : nodes)
    pattern_.nodes.push_back({node.is_loop, node.end + first_node, node.numbers + first_number});
  pattern_.numbers.insert(pattern_.numbers.end(), numbers.begin(), numbers.end());
  count_ += count;
}

void PatternBuilder::add_exception(std::uint64_t position, const std::int64_t* vector) {
  pattern_.exception_positions.push_back(position);
  pattern_.exception_values.insert(pattern_.exception_values.end(), vector, vector + pattern_.columns);
}

Pattern PatternBuilder::finish() {
  end_block();
  count_ = 0;
  Pattern empty;
  empty.columns = pattern_.columns;
  empty.follows = pattern_.follows;
  return std::exchange(pattern_, std::move(empty));
}

}  // namespace iosig
