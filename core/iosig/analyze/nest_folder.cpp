#include "iosig/analyze/nest_folder.h"

#include "iosig/model/literals.h"

namespace iosig {
namespace {

constexpr std::uint32_t window = 32;            ///< the longest body of a loop, in terms
constexpr std::size_t max_folded_vectors = 64;  ///< maximum number pushed at once that are folded

}  // namespace

NestFolder::NestFolder(std::uint32_t columns)
    : columns_(columns), stack_(columns, window), builder_(columns, Pattern().follows) {}

void NestFolder::fold() {
  while (stack_.extend_forwards() || stack_.reduce()) {
  }
  if (stack_.is_full()) stack_.emit(builder_, exceptions_, false);
}

void NestFolder::push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t count) {
  fold();  // only now are the last nest's exceptions complete
  stack_.push_nest(nodes, numbers, position_, count);
  last_nest_ = position_;
  position_ += count;
}

void NestFolder::push_exception(std::uint64_t within, const std::int64_t* vector) {
  exceptions_.positions.push_back(last_nest_ + within);
  exceptions_.values.insert(exceptions_.values.end(), vector, vector + columns_);
}

void NestFolder::push_vectors(std::span<const std::int64_t> vectors) {
  fold();
  const bool are_many = vectors.size() / columns_ > max_folded_vectors;
  if (are_many) stack_.emit(builder_, exceptions_, true);
  for (std::size_t at = 0; at < vectors.size(); at += columns_, ++position_) {
    if (are_many) {
      builder_.add_literal(&vectors[at]);
      continue;
    }
    stack_.push_leaf(&vectors[at], position_);
    fold();
  }
}

void NestFolder::push_pattern(const Pattern& pattern) {
  std::size_t exception = 0;
  std::vector<Node> nodes;
  for (const Term& term : pattern.terms) {
    if (!term.is_nest) {
      (void)read_block(std::span(pattern.literals).subspan(term.at), columns_, block_);
      push_vectors(block_);
      continue;
    }
    const Node& root = pattern.nodes[term.at];
    nodes.assign(pattern.nodes.begin() + static_cast<std::ptrdiff_t>(term.at), pattern.nodes.begin() + root.end);
    const std::size_t numbers_end =
        root.end < pattern.nodes.size() ? pattern.nodes[root.end].numbers : pattern.numbers.size();
    const std::span<const std::int64_t> numbers =
        std::span(pattern.numbers).subspan(root.numbers, numbers_end - root.numbers);
    const std::uint32_t first_number = root.numbers;
    for (Node& node : nodes) {
      node.end -= static_cast<std::uint32_t>(term.at);
      node.numbers -= first_number;
    }
    push_nest(nodes, numbers, term.count);
    for (; exception < pattern.exception_positions.size() &&
           pattern.exception_positions[exception] < term.first + term.count;
         ++exception)
      push_exception(pattern.exception_positions[exception] - term.first,
                     &pattern.exception_values[exception * columns_]);
  }
}

Pattern NestFolder::finish() {
  fold();
  stack_.emit(builder_, exceptions_, true);
  exceptions_ = {};
  position_ = 0;
  return builder_.finish();
}

}  // namespace iosig
