// The turns of loops on the stack: turns before the first, the next turn, and the incomplete one.
#include <algorithm>

#include "iosig/analyze/term_stack.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_backwards = 1 << 16;  ///< elements of a turn to be put before a loop

}  // namespace

/// Puts turns before the top's first if the terms below match them. Loops of fewer than three turns are not recognised
/// when they arrive; without this, triangles and rank maps would lack their corners.
void TermStack::extend_backwards() {
  while (entries_.size() > 1) {
    const Entry top = entries_.back();
    scratch_nodes_.assign(nodes_.begin() + top.node, nodes_.begin() + top.node + top.nodes);
    scratch_numbers_.assign(numbers_.begin() + top.number, numbers_.begin() + top.number + top.numbers);
    ++scratch_numbers_[0];
    for (std::size_t node = 1; node < scratch_nodes_.size(); ++node) {
      const Group group = group_of(scratch_nodes_, node, scratch_numbers_.size());
      std::int64_t* numbers = scratch_numbers_.data() + scratch_nodes_[node].numbers;
      for (std::uint32_t n = 0; n < group.numbers; n += group.size)
        if (__builtin_sub_overflow(numbers[n], numbers[n + 1], &numbers[n])) return;
    }
    const NestView nest{scratch_nodes_.data(), scratch_numbers_.data(), columns_};
    if (!fault_of(nest, 0).empty()) return;
    const std::uint64_t more = count_before(nest, 0, {}, 1);
    if (more == 0 || more > max_backwards) return;
    std::size_t entry = entries_.size() - 1;
    std::uint64_t below = 0;
    while (entry > 0 && below < more) below += entries_[--entry].count;
    if (below != more || !begins_with(nest, entry)) return;
    const std::uint64_t first = entries_[entry].first;
    drop(entries_.size() - entry);
    push_scratch(first, top.count + more);
  }
}

bool TermStack::extend_forwards() {
  const std::size_t size = entries_.size();
  for (std::size_t body = 1; body <= window_ && body < size; ++body) {
    const std::size_t loop = size - 1 - body;
    if (!nodes_[entries_[loop].node].is_loop || !is_next_turn(loop)) continue;
    const std::int64_t trips = numbers_[entries_[loop].number];
    if (trips == INT64_MAX || !fault_of(view(entries_[loop]), 0, trips + 1).empty()) return false;
    const std::uint64_t count = entries_.back().first + entries_.back().count - entries_[loop].first;
    drop(body);
    set_top(trips + 1, count);
    return true;
  }
  return false;
}

/// Returns whether the terms above `loop` are its next turn, one for each node of its body.
bool TermStack::is_next_turn(std::size_t loop) {
  const Entry& below = entries_[loop];
  const std::span<const Node> nodes(nodes_.data() + below.node, below.nodes);
  std::size_t entry = loop;
  for (std::uint32_t child = 1; child < nodes.size(); child = nodes[child].end)
    if (++entry == entries_.size() || entries_[entry].nodes != nodes[child].end - child) return false;
  if (entry + 1 != entries_.size()) return false;
  partial_nodes_.assign(nodes.begin(), nodes.end());
  partial_numbers_.assign(numbers_.begin() + below.number, numbers_.begin() + below.number + below.numbers);
  Indices at{};
  at[0] = partial_numbers_[0];
  entry = loop;
  for (std::uint32_t child = 1; child < partial_nodes_.size(); child = partial_nodes_[child].end) {
    const Entry& term = entries_[++entry];
    scratch_nodes_.clear();
    scratch_numbers_.clear();
    copy_instance(child, at, 1, 1);
    if (!std::equal(scratch_nodes_.begin(), scratch_nodes_.end(), nodes_.begin() + term.node,
                    nodes_.begin() + term.node + term.nodes) ||
        !std::equal(scratch_numbers_.begin(), scratch_numbers_.end(), numbers_.begin() + term.number,
                    numbers_.begin() + term.number + term.numbers))
      return false;
  }
  return true;
}

/// Returns whether the entries from `entry` to the one below the top are the beginning of the nest.
bool TermStack::begins_with(const NestView& nest, std::size_t entry) const {
  std::array<std::int64_t, max_columns> expected{}, found{};
  NestWalk walk, term;
  walk.start(nest, 0, 0, nest.numbers[0]);
  for (; entry + 1 < entries_.size(); ++entry) {
    const NestView one = view(entries_[entry]);
    const bool is_nest = one.nodes[0].is_loop;
    if (is_nest)
      term.start(one, 0, 0, one.numbers[0]);
    else
      std::copy_n(one.numbers, columns_, found.begin());
    for (std::uint64_t n = 0; n < entries_[entry].count; ++n, walk.advance()) {
      if (is_nest) term.values(found.data());
      walk.values(expected.data());
      if (!std::equal(found.begin(), found.begin() + columns_, expected.begin())) return false;
      if (is_nest) term.advance();
    }
  }
  return true;
}

void TermStack::push_partial(const NestWalk& walk) {
  const Entry top = entries_.back();
  partial_nodes_.assign(nodes_.begin() + top.node, nodes_.begin() + top.node + top.nodes);
  partial_numbers_.assign(numbers_.begin() + top.number, numbers_.begin() + top.number + top.numbers);
  Indices at{};
  for (std::size_t d = 0; d < walk.depth(); ++d) {
    at[d] = walk.index(d);
    const bool is_last = d + 1 == walk.depth();
    const std::uint32_t within = is_last ? walk.leaf() : walk.loop(d + 1);
    for (std::uint32_t node = walk.loop(d) + 1; node != within; node = partial_nodes_[node].end) {
      const std::int64_t* numbers = partial_numbers_.data() + partial_nodes_[node].numbers;
      push_instance(node, at, d + 1, affine(numbers, at.data(), d + 1));
    }
    if (!is_last) push_instance(within, at, d + 1, walk.index(d + 1));
  }
}

/// Pushes node `node` of the partial nest, with the `depth` loops around it at `at`; a loop turns `trips` times.
void TermStack::push_instance(std::uint32_t node, Indices& at, std::size_t depth, std::int64_t trips) {
  const Node root = partial_nodes_[node];
  const std::uint64_t first = entries_.back().first + entries_.back().count;
  if (!root.is_loop) {
    std::array<std::int64_t, max_columns> vector{};
    for (std::uint32_t column = 0; column < columns_; ++column)
      vector[column] = affine(partial_numbers_.data() + root.numbers + column * (depth + 1), at.data(), depth);
    push_leaf(vector.data(), first);
    reduce();
    return;
  }
  if (trips < 3) return unroll(node, at, depth, trips);
  scratch_nodes_.clear();
  scratch_numbers_.clear();
  copy_instance(node, at, depth, depth);
  if (scratch_nodes_.empty()) return;
  scratch_numbers_[0] = trips;
  const NestView nest{scratch_nodes_.data(), scratch_numbers_.data(), columns_};
  if (!fault_of(nest, 0).empty()) {  // a loop in it has no turns at `at`
    unroll(node, at, depth, trips);
    return;
  }
  push_scratch(first, count_of(nest, 0, {}));
  reduce();
}

/// Pushes the loop `node` of the partial nest turn by turn.
void TermStack::unroll(std::uint32_t node, Indices& at, std::size_t depth, std::int64_t trips) {
  for (std::int64_t turn = 0; turn < trips; ++turn) {
    at[depth] = turn;
    for (std::uint32_t child = node + 1; child < partial_nodes_[node].end; child = partial_nodes_[child].end) {
      const std::int64_t* numbers = partial_numbers_.data() + partial_nodes_[child].numbers;
      push_instance(child, at, depth + 1, affine(numbers, at.data(), depth + 1));
    }
  }
}

/// Copies `node` to scratch as it is within the first `fixed` loops at `at`, without loops that have no turns there.
void TermStack::copy_instance(std::uint32_t node, const Indices& at, std::size_t depth, std::size_t fixed) {
  const Node& source = partial_nodes_[node];
  const Group group = group_of(partial_nodes_, node, partial_numbers_.size());
  const std::int64_t* numbers = partial_numbers_.data() + source.numbers;
  const std::size_t me = scratch_nodes_.size(), first = scratch_numbers_.size();
  scratch_nodes_.push_back({source.is_loop, 0, static_cast<std::uint32_t>(first)});
  for (std::uint32_t m = 0; m < group.numbers; m += group.size) {
    scratch_numbers_.push_back(affine(numbers + m, at.data(), fixed));
    scratch_numbers_.insert(scratch_numbers_.end(), numbers + m + fixed + 1, numbers + m + group.size);
  }
  const bool never_turns = source.is_loop && depth > fixed &&
                           std::all_of(scratch_numbers_.begin() + static_cast<std::ptrdiff_t>(first),
                                       scratch_numbers_.end(), [](std::int64_t n) { return n == 0; });
  for (std::uint32_t child = node + 1; child < source.end && !never_turns; child = partial_nodes_[child].end)
    copy_instance(child, at, depth + 1, fixed);
  if (never_turns || (source.is_loop && scratch_nodes_.size() == me + 1)) {
    scratch_nodes_.resize(me);
    scratch_numbers_.resize(first);
    return;
  }
  scratch_nodes_[me].end = static_cast<std::uint32_t>(scratch_nodes_.size());
}

}  // namespace iosig
