// The window in which nested loops are recognised: terms on a stack, of which the last 3 k may become a loop.
//
// Source: A. Ketterlin, P. Clauss: Prediction and trace compression of data access addresses through nested loop
// recognition, CGO 2008. Three times the same k terms, their numbers affine, are a loop over k terms. Ours: trip counts
// are numbers like the others, so that loops of unlike length may be affine too; the numbers of a term are summed up in
// one that is affine where they are, and each term keeps a bit for every body that it may end; everything lies flat.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {

/// Vectors that stand in the place of what terms say, in order of position. Those of emitted terms are gone.
struct Exceptions {
  std::vector<std::uint64_t> positions;
  std::vector<std::int64_t> values;  ///< `columns` for each position
  std::size_t emitted = 0;           ///< positions before which nothing is of interest
};

/// Terms in order of position, without gaps. A term is one vector, or a nest whose root is a loop. Node::end and
/// Node::numbers count from the term's own first.
class TermStack {
 public:
  struct Entry {
    std::uint64_t first = 0, count = 0;  ///< positions
    std::uint32_t node = 0, nodes = 0, number = 0, numbers = 0;
  };

  /// `window`: the longest body of a loop, in terms, that is sought in any case. Up to 16 times as long bodies are
  /// found where the steps from term to term repeat.
  TermStack(std::uint32_t columns, std::uint32_t window);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] const Entry& top() const { return entries_.back(); }
  [[nodiscard]] bool top_is_nest() const { return !empty() && nodes_[top().node].is_loop; }
  /// Valid until the stack changes.
  [[nodiscard]] NestView view(const Entry& entry) const {
    return {nodes_.data() + entry.node, numbers_.data() + entry.number, columns_};
  }

  void push_leaf(const std::int64_t* vector, std::uint64_t position);
  /// A nest that begins at node 0 and number 0, after the top; it stands for `count` vectors.
  void push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t first,
                 std::uint64_t count);
  /// Pushes what `walk`, over the top, has begun of its current iteration of the outermost loop: loops that turn at
  /// most twice as their vectors, nothing for what it has not come to.
  void push_partial(const NestWalk& walk);
  /// The top's outermost loop turns `trips` times, which is `count` elements.
  void set_top(std::int64_t trips, std::uint64_t count);
  /// Makes loops of the last terms until there are no more; whether there was one.
  bool reduce();
  /// Makes the last terms the next turn of the loop below them, if they are; whether they were. For those who push
  /// whole nests: a running one is followed vector by vector (analyze/detect).
  bool extend_forwards();
  /// Moves the oldest terms to `builder` (all but what may still become a loop, or simply all).
  void emit(PatternBuilder& builder, Exceptions& exceptions, bool all);
  [[nodiscard]] bool is_full() const { return entries_.size() >= 2 * kept_ || nodes_.size() >= max_kept_nodes; }

 private:
  static constexpr std::size_t max_kept_nodes = 1 << 16;
  bool reduce_once();
  [[nodiscard]] bool is_even(std::size_t term, std::size_t body) const {
    const std::uint64_t* print = prints_.data() + term;
    return print[0] - *(print - body) == *(print - body) - *(print - 2 * body);
  }
  void add_print(std::uint64_t print);
  [[nodiscard]] std::uint64_t even_before_top() const;
  [[nodiscard]] std::uint64_t even_bodies() const;
  [[nodiscard]] bool may_be_loop(std::size_t body) const;
  std::size_t distance_to_same_steps();
  [[nodiscard]] bool is_affine(const Entry& x, const Entry& y, const Entry& z) const;
  bool make_loop(std::size_t body);
  void extend_backwards();
  [[nodiscard]] bool is_next_turn(std::size_t loop);
  [[nodiscard]] bool begins_with(const NestView& nest, std::size_t entry) const;
  using Indices = std::array<std::int64_t, max_nest_depth>;
  void push_instance(std::uint32_t node, Indices& at, std::size_t depth, std::int64_t trips);
  void unroll(std::uint32_t node, Indices& at, std::size_t depth, std::int64_t trips);
  void copy_instance(std::uint32_t node, const Indices& at, std::size_t depth, std::size_t fixed);
  /// Of a term's node: how many numbers, and of these how many for each column (or for the trip count).
  struct Group {
    std::uint32_t numbers, size;
  };
  [[nodiscard]] Group group_of(std::span<const Node> nodes, std::size_t node, std::size_t numbers) const;
  void push_scratch(std::uint64_t first, std::uint64_t count);
  void drop(std::size_t terms);
  void emit_entry(const Entry& entry, PatternBuilder& builder, Exceptions& exceptions) const;

  std::uint32_t columns_, window_;
  std::size_t kept_;           ///< terms that may still become a loop
  std::uint64_t emitted_ = 0;  ///< terms
  std::vector<Entry> entries_;
  /// By the last two steps between prints: these, mixed, and the number of the term that they led to. Half of either is
  /// enough: what they say is looked at.
  struct Steps {
    std::uint32_t mixed = 0, term = 0;
  };
  std::vector<Steps> last_steps_;
  // Of each entry: its nodes and numbers hashed, so that sums and differences of the latter survive; and for bodies of
  // 1 to 64 terms a bit, the lowest for 1, whether its print and those of the terms one and two bodies below are even.
  std::vector<std::uint64_t> prints_, even_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
  std::vector<Node> scratch_nodes_, partial_nodes_;
  std::vector<std::int64_t> scratch_numbers_, partial_numbers_;
};

}  // namespace iosig
