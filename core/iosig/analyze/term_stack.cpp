#include "iosig/analyze/term_stack.h"

#include <algorithm>
#include <bit>

namespace iosig {
namespace {

constexpr std::size_t long_windows = 16;  ///< longest body, in windows
constexpr std::size_t max_nodes = 4096;   ///< in a loop; longer bodies are not folded

constexpr std::size_t max_even = 64;  ///< longest body in even_

/// Returns the factor of number `n` of a term in its print: odd and pseudo-random, to keep numbers from cancelling out.
constexpr std::uint64_t factor(std::uint64_t n) {
  std::uint64_t mixed = (n + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
  return (mixed ^ (mixed >> 32)) | 1;
}
constexpr auto leaf_factors = [] {
  std::array<std::uint64_t, max_columns> factors{};
  for (std::size_t n = 0; n < factors.size(); ++n) factors[n] = factor(n);
  return factors;
}();

/// Returns a mask of the bodies of 1 to `body` terms.
constexpr std::uint64_t bodies_to(std::size_t body) {
  return body >= max_even ? ~std::uint64_t{0} : (std::uint64_t{1} << body) - 1;
}

constexpr std::uint64_t shape_of(std::span<const Node> nodes) {
  std::uint64_t shape = 0xcbf29ce484222325;
  for (const Node& node : nodes) shape = (shape ^ (node.end * 2 + (node.is_loop ? 1 : 0))) * factor(0);
  return shape;
}

/// Returns whether y - x == z - y, without overflow.
bool is_straight(std::int64_t x, std::int64_t y, std::int64_t z) {
  std::int64_t first = 0, second = 0;
  return !__builtin_sub_overflow(y, x, &first) && !__builtin_sub_overflow(z, y, &second) && first == second;
}

}  // namespace

TermStack::TermStack(std::uint32_t columns, std::uint32_t window)
    : columns_(columns),
      window_(std::max(window, 1u)),
      kept_(3 * std::size_t{window_} * long_windows),
      last_steps_(std::bit_ceil(4 * std::size_t{window_} * long_windows)) {
  const std::size_t terms = std::size_t{6} * window_;  // more if long bodies are sought
  entries_.reserve(terms);
  prints_.reserve(terms);
  even_.reserve(terms);
  nodes_.reserve(2 * terms);
  numbers_.reserve(2 * terms * columns);
}

TermStack::Group TermStack::group_of(std::span<const Node> nodes, std::size_t node, std::size_t numbers) const {
  const std::size_t end = node + 1 < nodes.size() ? nodes[node + 1].numbers : numbers;
  const auto all = static_cast<std::uint32_t>(end - nodes[node].numbers);
  return {all, nodes[node].is_loop ? all : all / columns_};
}

/// Adds the print of the new entry on top.
void TermStack::add_print(std::uint64_t print) {
  prints_.push_back(print);
  even_.push_back(even_before_top());
}

/// Returns the even_ bits of the entry on top.
std::uint64_t TermStack::even_before_top() const {
  const std::size_t top = prints_.size() - 1;
  std::uint64_t even = 0;
#pragma GCC unroll 4
  for (std::size_t body = std::min<std::size_t>({window_, max_even, top / 2}); body > 0; --body)
    even = 2 * even + (is_even(top, body) ? 1 : 0);
  return even;
}

/// Returns the bodies of up to 64 terms that, by their prints, occur three times in a row on top.
std::uint64_t TermStack::even_bodies() const {
  const std::size_t size = even_.size();
  std::uint64_t bodies = even_.back() & bodies_to(size / 3);
  for (std::size_t below = 1; bodies > bodies_to(below); ++below) bodies &= even_[size - 1 - below] | bodies_to(below);
  return bodies;
}

/// As even_bodies(), for one body of any length.
bool TermStack::may_be_loop(std::size_t body) const {
  const std::size_t size = prints_.size();
  if (3 * body > size) return false;
  for (std::size_t below = 0; below < body; ++below)
    if (!is_even(size - 1 - below, body)) return false;
  return true;
}

void TermStack::push_leaf(const std::int64_t* vector, std::uint64_t position) {
  entries_.push_back({position, 1, static_cast<std::uint32_t>(nodes_.size()), 1,
                      static_cast<std::uint32_t>(numbers_.size()), columns_});
  nodes_.push_back({false, 1, 0});
  static constexpr std::array leaf{Node{false, 1, 0}};
  std::uint64_t print = shape_of(leaf);
  for (std::uint32_t column = 0; column < columns_; ++column) {
    numbers_.push_back(vector[column]);
    print += leaf_factors[column] * static_cast<std::uint64_t>(vector[column]);
  }
  add_print(print);
}

void TermStack::push_nest(std::span<const Node> nodes, std::span<const std::int64_t> numbers, std::uint64_t first,
                          std::uint64_t count) {
  scratch_nodes_.assign(nodes.begin(), nodes.end());
  scratch_numbers_.assign(numbers.begin(), numbers.end());
  push_scratch(first, count);
}

/// Pushes the nest in scratch.
void TermStack::push_scratch(std::uint64_t first, std::uint64_t count) {
  entries_.push_back({first, count, static_cast<std::uint32_t>(nodes_.size()),
                      static_cast<std::uint32_t>(scratch_nodes_.size()), static_cast<std::uint32_t>(numbers_.size()),
                      static_cast<std::uint32_t>(scratch_numbers_.size())});
  nodes_.insert(nodes_.end(), scratch_nodes_.begin(), scratch_nodes_.end());
  numbers_.insert(numbers_.end(), scratch_numbers_.begin(), scratch_numbers_.end());
  std::uint64_t print = shape_of(scratch_nodes_);
  for (std::size_t n = 0; n < scratch_numbers_.size(); ++n)
    print += factor(n) * static_cast<std::uint64_t>(scratch_numbers_[n]);
  add_print(print);
}

/// Pops the last `terms`.
void TermStack::drop(std::size_t terms) {
  const std::size_t left = entries_.size() - terms;
  nodes_.resize(entries_[left].node);
  numbers_.resize(entries_[left].number);
  entries_.resize(left);
  prints_.resize(left);
  even_.resize(left);
}

void TermStack::set_top(std::int64_t trips, std::uint64_t count) {
  Entry& entry = entries_.back();
  std::int64_t& stored = numbers_[entry.number];
  prints_.back() += factor(0) * (static_cast<std::uint64_t>(trips) - static_cast<std::uint64_t>(stored));
  even_.back() = even_before_top();
  stored = trips;
  entry.count = count;
}

bool TermStack::reduce() {
  bool any = false;
  while (reduce_once()) any = true;
  return any;
}

bool TermStack::reduce_once() {
  if (entries_.size() < 3) return false;
  for (std::uint64_t bodies = even_bodies(); bodies != 0; bodies &= bodies - 1)
    if (make_loop(static_cast<std::size_t>(std::countr_zero(bodies)) + 1)) return true;
  for (std::size_t body = max_even + 1; body <= window_ && 3 * body <= entries_.size(); ++body)
    if (may_be_loop(body) && make_loop(body)) return true;
  const std::size_t body = distance_to_same_steps();
  return body > window_ && may_be_loop(body) && make_loop(body);
}

/// Returns the distance in terms to the previous occurrence of the last two steps between prints, or 0. Finds bodies
/// longer than the window.
std::size_t TermStack::distance_to_same_steps() {
  const std::size_t size = entries_.size();
  const std::uint64_t* last = prints_.data() + size - 1;
  std::uint64_t mixed = (last[0] - last[-1]) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 32) ^ (last[-1] - last[-2])) * 0xbf58476d1ce4e5b9;
  Steps& steps = last_steps_[(mixed >> 32) & (last_steps_.size() - 1)];
  const auto tag = static_cast<std::uint32_t>(mixed), term = static_cast<std::uint32_t>(emitted_ + size);
  const std::uint32_t distance = steps.mixed == tag ? term - steps.term : 0;
  steps = {tag, term};
  return distance;
}

/// Returns whether three terms are the same nest with evenly growing first numbers and otherwise equal numbers.
bool TermStack::is_affine(const Entry& x, const Entry& y, const Entry& z) const {
  if (x.nodes != y.nodes || x.nodes != z.nodes || x.numbers != y.numbers || x.numbers != z.numbers) return false;
  const std::span<const Node> nodes(nodes_.data() + x.node, x.nodes);
  if (!std::equal(nodes.begin(), nodes.end(), nodes_.begin() + y.node) ||
      !std::equal(nodes.begin(), nodes.end(), nodes_.begin() + z.node))
    return false;
  const std::int64_t* xs = numbers_.data() + x.number;
  const std::int64_t* ys = numbers_.data() + y.number;
  const std::int64_t* zs = numbers_.data() + z.number;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const Group group = group_of(nodes, node, x.numbers);
    for (std::uint32_t n = 0; n < group.numbers; ++n, ++xs, ++ys, ++zs)
      if (n % group.size == 0 ? !is_straight(*xs, *ys, *zs) : *xs != *ys || *ys != *zs) return false;
  }
  return true;
}

/// Replaces the last 3 * `body` terms, whose prints are even, by a loop of three turns. Returns false if they are not
/// one.
bool TermStack::make_loop(std::size_t body) {
  const Entry* x = &entries_[entries_.size() - 3 * body];
  std::size_t nodes = 1;
  for (std::size_t n = 0; n < body; ++n) {
    if (!is_affine(x[n], x[n + body], x[n + 2 * body])) return false;
    nodes += x[n].nodes;
  }
  if (nodes > max_nodes) return false;
  scratch_nodes_.assign(1, {true, static_cast<std::uint32_t>(nodes), 0});
  scratch_numbers_.assign(1, 3);
  for (std::size_t n = 0; n < body; ++n) {
    const std::span<const Node> term(nodes_.data() + x[n].node, x[n].nodes);
    const std::int64_t* xs = numbers_.data() + x[n].number;
    const std::int64_t* ys = numbers_.data() + x[n + body].number;
    const auto offset = static_cast<std::uint32_t>(scratch_nodes_.size());
    for (std::size_t node = 0; node < term.size(); ++node) {
      const Group group = group_of(term, node, x[n].numbers);
      scratch_nodes_.push_back(
          {term[node].is_loop, term[node].end + offset, static_cast<std::uint32_t>(scratch_numbers_.size())});
      for (std::uint32_t m = 0; m < group.numbers; ++m, ++xs, ++ys) {
        scratch_numbers_.push_back(*xs);
        if (m % group.size == 0) scratch_numbers_.push_back(*ys - *xs);
      }
    }
  }
  if (!fault_of({scratch_nodes_.data(), scratch_numbers_.data(), columns_}, 0).empty()) return false;
  const std::uint64_t first = x->first;
  const std::uint64_t count = entries_.back().first + entries_.back().count - first;
  drop(3 * body);
  push_scratch(first, count);
  if (nodes > body + 1) extend_backwards();
  return true;
}

void TermStack::emit(PatternBuilder& builder, Exceptions& exceptions, bool all) {
  const bool is_heavy = nodes_.size() >= max_kept_nodes;
  const std::size_t kept = all ? 0 : is_heavy ? std::size_t{3} * window_ : kept_;
  if (entries_.size() <= kept) return;
  const std::size_t gone = entries_.size() - kept;
  emitted_ += gone;
  for (std::size_t n = 0; n < gone; ++n) emit_entry(entries_[n], builder, exceptions);
  if (all) {
    drop(entries_.size());
    return;
  }
  const std::uint32_t node = entries_[gone].node, number = entries_[gone].number;
  nodes_.erase(nodes_.begin(), nodes_.begin() + node);
  numbers_.erase(numbers_.begin(), numbers_.begin() + number);
  const auto terms = static_cast<std::ptrdiff_t>(gone);
  entries_.erase(entries_.begin(), entries_.begin() + terms);
  prints_.erase(prints_.begin(), prints_.begin() + terms);
  even_.erase(even_.begin(), even_.begin() + terms);
  for (Entry& entry : entries_) {
    entry.node -= node;
    entry.number -= number;
  }
}

void TermStack::emit_entry(const Entry& entry, PatternBuilder& builder, Exceptions& exceptions) const {
  const std::uint64_t end = entry.first + entry.count;
  const auto exception_at = [&](std::uint64_t position) -> const std::int64_t* {
    const std::size_t n = exceptions.emitted;
    if (n == exceptions.positions.size() || exceptions.positions[n] >= end) return nullptr;
    if (exceptions.positions[n] != position) return nullptr;
    ++exceptions.emitted;
    return &exceptions.values[n * columns_];
  };
  const NestView nest = view(entry);
  if (!nest.nodes[0].is_loop) {
    const std::int64_t* exception = exception_at(entry.first);
    builder.add_literal(exception ? exception : nest.numbers);
    return;
  }
  if (builder.is_in_literals() && entry.count * columns_ < 4 * entry.numbers) {  // not worth ending the block
    std::array<std::int64_t, max_columns> vector{};
    NestWalk walk;
    walk.start(nest, 0, 0, nest.numbers[0]);
    for (std::uint64_t position = entry.first; position < end; ++position, walk.advance()) {
      const std::int64_t* exception = exception_at(position);
      walk.values(vector.data());
      builder.add_literal(exception ? exception : vector.data());
    }
    return;
  }
  builder.add_nest({nest.nodes, entry.nodes}, {nest.numbers, entry.numbers}, entry.count);
  for (std::size_t& n = exceptions.emitted; n < exceptions.positions.size() && exceptions.positions[n] < end; ++n)
    builder.add_exception(exceptions.positions[n], &exceptions.values[n * columns_]);
}

}  // namespace iosig
