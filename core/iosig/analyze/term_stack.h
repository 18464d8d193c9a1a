// The window that recognises nested loops: a stack of terms, of which the last 3 k may become a loop.
//
// Source: A. Ketterlin, P. Clauss: Prediction and trace compression of data access addresses through nested loop
// recognition, CGO 2008. Three repetitions of the same k terms whose numbers are affine become a loop over k terms.
// Example: the vectors 0, 8, 16 become a loop of 3 turns with the vector 8 i. Ours: trip counts are numbers like the
// others, so loops of different lengths may be affine too; a term's numbers are hashed into one print that is affine if
// they are; each term has one bit per loop body that it may end; all data are in flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {

/// Vectors that replace what terms say, sorted by position. Those of emitted terms are dropped.
struct Exceptions {
  std::vector<std::uint64_t> positions;
  std::vector<std::int64_t> values;  ///< `columns` for each position
  std::size_t emitted = 0;           ///< index of the first exception that is not emitted yet
};

/// Terms sorted by position, without gaps. A term is one vector, or a nest whose root is a loop. Node::end and
/// Node::numbers are relative to the term's first node and number.
class TermStack {
 public:
  struct Entry {
    std::uint64_t first = 0, count = 0;  ///< positions
    std::uint32_t node = 0, nodes = 0, number = 0, numbers = 0;
  };

  /// `window`: the longest body of a loop, in terms, that is always found. Bodies of up to 16 times that length are
  /// found if the steps from term to term repeat.
  TermStack(std::uint32_t columns, std::uint32_t window);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] const Entry& top() const { return entries_.back(); }
  [[nodiscard]] bool top_is_nest() const { return !empty() && nodes_[top().node].is_loop; }
  /// Valid until the stack changes.
  [[nodiscard]] NestView view(const Entry& entry) const {
    return {nodes_.data() + entry.node, numbers_.data() + entry.number, columns_};
  }

  void push_leaf(const std::int64_t* vector, std::uint64_t position);
  /// Pushes a nest of `count` vectors that begins at node 0 and number 0.
  void push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t first,
                 std::uint64_t count);
  /// Pushes the incomplete turn of the top's outermost loop, up to the position of `walk`. Loops of at most two turns
  /// are pushed as vectors; parts that were not reached are omitted.
  void push_partial(const NestWalk& walk);
  /// Sets the trip count of the top's outermost loop to `trips`, which makes `count` elements.
  void set_top(std::int64_t trips, std::uint64_t count);
  /// Replaces the last terms by loops as often as possible. Returns whether any loop was made.
  bool reduce();
  /// Merges the last terms into the loop below them if they are its next turn. Returns whether they were. Needed only
  /// by callers that push whole nests: analyze/detect follows a running nest vector by vector.
  bool extend_forwards();
  /// Moves the oldest terms to `builder`: all except those that may still become a loop, or simply all.
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
  /// The count of numbers of a term's node, and of those the count per column (or for the trip count).
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
  /// Hash table from the last two steps between prints to the number of the term that they led to. Truncated hashes
  /// suffice: candidates are verified.
  struct Steps {
    std::uint32_t mixed = 0, term = 0;
  };
  std::vector<Steps> last_steps_;
  // Per entry. prints_: a hash of its nodes and numbers that preserves sums and differences of the numbers. even_: a
  // bit for each body of 1 to 64 terms (the lowest bit for 1) that is set if its print and those of the terms one
  // and two bodies below are evenly spaced.
  std::vector<std::uint64_t> prints_, even_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
  std::vector<Node> scratch_nodes_, partial_nodes_;
  std::vector<std::int64_t> scratch_numbers_, partial_numbers_;
};

}  // namespace iosig
