#include "iosig/analyze/split.h"

#include <algorithm>

#include "iosig/model/literals.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

std::size_t numbers_end(const Pattern& pattern, std::uint32_t node) {
  return node + 1 < pattern.nodes.size() ? pattern.nodes[node + 1].numbers : pattern.numbers.size();
}

class Splitter {
 public:
  explicit Splitter(const Pattern& pattern) : pattern_(pattern), builder_(pattern.columns, pattern.follows) {}

  Pattern split(std::span<const std::uint32_t> terms) {
    std::vector<std::int64_t> block;
    for (std::uint32_t term = 0; term < pattern_.terms.size(); ++term) {
      const Term& it = pattern_.terms[term];
      const auto node = static_cast<std::uint32_t>(it.at);
      if (!it.is_nest) {
        (void)read_block(std::span(pattern_.literals).subspan(it.at), pattern_.columns, block);
        for (std::size_t at = 0; at < block.size(); at += pattern_.columns) builder_.add_literal(&block[at]);
        builder_.end_block();
      } else if (terms.empty() || terms.front() != term) {
        add(node, 0, 0);
      } else {
        terms = terms.subspan(1);
        const std::int64_t turns = pattern_.numbers[pattern_.nodes[node].numbers];
        for (std::int64_t turn = 0; turn < turns; ++turn)
          for (std::uint32_t child = node + 1; child < pattern_.nodes[node].end; child = pattern_.nodes[child].end)
            add(child, 1, turn);
      }
    }
    return builder_.finish();
  }

 private:
  /// Adds `node` as a term. If `depth` is 1, `node` lies in the outermost loop and is taken as in its turn `turn`.
  void add(std::uint32_t node, std::uint32_t depth, std::int64_t turn) {
    nodes_.clear();
    numbers_.clear();
    std::uint32_t node_depth = depth;
    std::vector<std::uint32_t> ends;  // of the enclosing loops
    for (std::uint32_t n = node; n < pattern_.nodes[node].end; ++n) {
      while (!ends.empty() && ends.back() == n) ends.pop_back();
      node_depth = depth + static_cast<std::uint32_t>(ends.size());
      const Node& it = pattern_.nodes[n];
      nodes_.push_back({it.is_loop, it.end - node, static_cast<std::uint32_t>(numbers_.size())});
      for (std::size_t at = it.numbers; at < numbers_end(pattern_, n); at += node_depth + 1) {
        const std::int64_t* const number = pattern_.numbers.data() + at;
        numbers_.push_back(depth == 0 ? number[0] : affine(number, &turn, 1));
        numbers_.insert(numbers_.end(), number + depth + 1, number + node_depth + 1);
      }
      if (it.is_loop) ends.push_back(it.end);
    }
    const std::uint64_t first = builder_.count();
    const auto& positions = pattern_.exception_positions;
    const auto exception = [&] { return pattern_.exception_values.data() + exception_ * pattern_.columns; };
    if (!nodes_[0].is_loop) {
      const bool is_exception = exception_ < positions.size() && positions[exception_] == first;
      builder_.add_literal(is_exception ? exception() : numbers_.data());
      exception_ += is_exception ? 1 : 0;
      return;
    }
    const std::uint64_t count = count_of({nodes_.data(), numbers_.data(), pattern_.columns}, 0, {});
    builder_.add_nest(nodes_, numbers_, count);
    for (; exception_ < positions.size() && positions[exception_] < first + count; ++exception_)
      builder_.add_exception(positions[exception_], exception());
  }

  const Pattern& pattern_;
  PatternBuilder builder_;
  std::size_t exception_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

bool can_take_apart(const Pattern& pattern, std::uint32_t term, std::int64_t max_turns) {
  const Term& it = pattern.terms[term];
  if (!it.is_nest) return false;
  const auto root = static_cast<std::uint32_t>(it.at);
  if (pattern.numbers[pattern.nodes[root].numbers] > max_turns) return false;
  bool has_loops = false;
  for (std::uint32_t node = root + 1; node < pattern.nodes[root].end; ++node) {
    if (!pattern.nodes[node].is_loop) continue;
    has_loops = true;
    const auto first = pattern.numbers.begin() + pattern.nodes[node].numbers;
    const auto end = pattern.numbers.begin() + static_cast<std::ptrdiff_t>(numbers_end(pattern, node));
    if (std::any_of(first + 1, end, [](std::int64_t factor) { return factor != 0; })) return false;
  }
  return has_loops;
}

Pattern turns_apart(const Pattern& pattern, std::span<const std::uint32_t> terms) {
  return Splitter(pattern).split(terms);
}

}  // namespace iosig
