#include "iosig/format/nest_bits.h"

#include <array>
#include <bit>

#include "iosig/model/bits.h"

namespace iosig {
namespace {

constexpr std::size_t max_back = 32;  ///< maximum distance, in nests, to the reference of a difference

/// The nodes and numbers of one nest.
struct NestSpan {
  std::span<const Node> nodes;
  std::span<const std::int64_t> numbers;
};

/// Returns the nest at node `root`; its numbers end at those of the next nest, or at the end.
NestSpan nest_at(const Pattern& pattern, std::uint64_t root) {
  const Node& first = pattern.nodes[root];
  const std::size_t end = first.end < pattern.nodes.size() ? pattern.nodes[first.end].numbers : pattern.numbers.size();
  return {{pattern.nodes.data() + root, first.end - root},
          {pattern.numbers.data() + first.numbers, end - first.numbers}};
}

bool have_same_shape(const NestSpan& one, const NestSpan& other) {
  if (one.nodes.size() != other.nodes.size() || one.numbers.size() != other.numbers.size()) return false;
  for (std::size_t n = 0; n < one.nodes.size(); ++n)
    if (one.nodes[n].is_loop != other.nodes[n].is_loop ||
        one.nodes[n].end - one.nodes[0].end != other.nodes[n].end - other.nodes[0].end)
      return false;
  return true;
}

/// The trip counts of the loops around a leaf, outermost first, without their dependence on other loops.
using Trips = std::array<std::int64_t, max_nest_depth + 1>;

/// Returns the expected factor of loop `d` in column `column` of a leaf within `depth` loops: the span of the next
/// inner loop, or for the innermost loop the previous column, since an access begins where the one before it ends.
/// `numbers`: of the leaf; the ones that are read here are coded earlier.
std::int64_t expected_factor(const std::int64_t* numbers, std::uint32_t column, std::uint32_t columns, std::size_t d,
                             std::size_t depth, const Trips& trips) {
  const std::size_t group = depth + 1;
  if (d + 1 < depth)
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[column * group + d + 2]) *
                                     static_cast<std::uint64_t>(trips[d + 1]));
  if (column > 0) return numbers[(column - 1) * group];
  return columns > 1 ? numbers[group] : 0;
}

class NestWriter {
 public:
  NestWriter(const Pattern& pattern, std::vector<std::uint8_t>& bytes) : pattern_(pattern), bits_(bytes) {}

  void write(std::uint32_t root) {
    bits_.put(1, 1);
    add_natural(1);
    add_node(root, 0);
    bits_.end();
  }

  /// Writes differences from the nest `like`, which is `back` nests earlier.
  void write(const NestSpan& nest, const NestSpan& like, std::size_t back) {
    bits_.put(1, 1);
    add_natural(back + 1);
    for (std::size_t n = 0; n < nest.numbers.size(); ++n)
      add_number(static_cast<std::int64_t>(static_cast<std::uint64_t>(nest.numbers[n]) -
                                           static_cast<std::uint64_t>(like.numbers[n])));
    bits_.end();
  }

 private:
  void add_node(std::uint32_t node, std::size_t depth) {
    const Node& it = pattern_.nodes[node];
    std::uint64_t body = 0;
    for (std::uint32_t child = node + 1; child < it.end; child = pattern_.nodes[child].end) ++body;
    add_natural(body + 1);
    const std::int64_t* numbers = pattern_.numbers.data() + it.numbers;
    if (!it.is_loop) return add_leaf(numbers, depth);
    for (std::size_t n = 0; n <= depth; ++n) add_number(numbers[n]);
    trips_[depth] = numbers[0];
    for (std::uint32_t child = node + 1; child < it.end; child = pattern_.nodes[child].end) add_node(child, depth + 1);
  }

  void add_leaf(const std::int64_t* numbers, std::size_t depth) {
    for (std::uint32_t column = 0; column < pattern_.columns; ++column) add_number(numbers[column * (depth + 1)]);
    for (std::uint32_t column = 0; column < pattern_.columns; ++column)
      for (std::size_t d = depth; d-- > 0;) {
        const std::int64_t factor = numbers[column * (depth + 1) + d + 1];
        bits_.put(factor != 0 ? 1 : 0, 1);
        if (factor == 0) continue;
        const bool is_expected = factor == expected_factor(numbers, column, pattern_.columns, d, depth, trips_);
        bits_.put(is_expected ? 1 : 0, 1);
        if (!is_expected) add_nonzero(factor);
      }
  }

  /// Writes a number >= 1: a zero for each bit after the highest, a one, and those bits.
  void add_natural(std::uint64_t value) {
    const auto more = static_cast<unsigned>(std::bit_width(value)) - 1;
    bits_.put(std::uint64_t{1} << more, more + 1);
    bits_.put(value - (std::uint64_t{1} << more), more);
  }

  void add_number(std::int64_t value) {
    bits_.put(value != 0 ? 1 : 0, 1);
    if (value != 0) add_nonzero(value);
  }

  void add_nonzero(std::int64_t value) {
    const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const auto shift = static_cast<unsigned>(std::countr_zero(size));
    const std::uint64_t odd = size >> shift;
    const auto width = static_cast<unsigned>(std::bit_width(odd));
    bits_.put(value < 0 ? 1 : 0, 1);
    add_natural(shift + 1);
    add_natural(width);
    if (width > 2) bits_.put((odd >> 1) - (std::uint64_t{1} << (width - 2)), width - 2);
  }

  const Pattern& pattern_;
  BitWriter bits_;
  Trips trips_{};
};

class NestReader {
 public:
  NestReader(std::span<const std::uint8_t> bytes, Pattern& pattern) : pattern_(pattern), bits_(bytes) {}

  tl::expected<std::size_t, std::string_view> read() {
    std::uint64_t back = 0;
    if (bits_.take(1) != 1) return tl::unexpected<std::string_view>("this is neither a nest nor a block of literals");
    if (!natural(back) || (back == 1 ? !node(0) : !nest_like(back - 1))) return tl::unexpected(fault_);
    return bits_.taken();
  }

 private:
  bool refuse(std::string_view what) {
    if (fault_.empty()) fault_ = bits_.is_past_end() ? "a nest is cut" : what;
    return false;
  }

  bool nest_like(std::uint64_t back) {
    std::size_t term = pattern_.terms.size();
    if (back > max_back) return refuse("a nest that is told by one too far before it");
    for (std::uint64_t nests = 0; nests < back; nests += pattern_.terms[term].is_nest ? 1 : 0)
      if (term-- == 0) return refuse("a nest that is told by one that is not there");
    const std::size_t first_node = pattern_.nodes.size(), first = pattern_.numbers.size();
    const NestSpan like = nest_at(pattern_, pattern_.terms[term].at);
    if (first_node + like.nodes.size() > UINT32_MAX || first > UINT32_MAX - like.numbers.size())
      return refuse("more than 2^32 numbers");
    const std::size_t like_node = pattern_.terms[term].at, like_number = like.nodes[0].numbers;
    const std::size_t nodes = like.nodes.size(), numbers = like.numbers.size();
    for (std::size_t n = 0; n < nodes; ++n) {
      Node node = pattern_.nodes[like_node + n];
      node.end += static_cast<std::uint32_t>(first_node - like_node);
      node.numbers += static_cast<std::uint32_t>(first - like_number);
      pattern_.nodes.push_back(node);
    }
    for (std::size_t n = 0; n < numbers; ++n) {
      std::int64_t difference = 0;
      if (!number(difference)) return false;
      pattern_.numbers.push_back(static_cast<std::int64_t>(
          static_cast<std::uint64_t>(pattern_.numbers[like_number + n]) + static_cast<std::uint64_t>(difference)));
    }
    return !bits_.is_past_end() || refuse("");
  }

  bool node(std::size_t depth) {
    std::uint64_t body = 0;
    if (depth > max_nest_depth) return refuse("more than 32 loops in each other");
    if (!natural(body)) return false;
    const bool is_loop = --body > 0;
    const std::size_t me = pattern_.nodes.size(), first = pattern_.numbers.size();
    if (me >= UINT32_MAX || first > UINT32_MAX - 1000) return refuse("more than 2^32 numbers");
    pattern_.nodes.push_back({is_loop, 0, static_cast<std::uint32_t>(first)});
    pattern_.numbers.resize(first + (is_loop ? 1 : pattern_.columns) * (depth + 1));
    std::int64_t* const numbers = pattern_.numbers.data() + first;
    if (is_loop) {
      for (std::size_t n = 0; n <= depth; ++n)
        if (!number(numbers[n])) return false;
      trips_[depth] = numbers[0];
      for (std::uint64_t n = 0; n < body; ++n)
        if (!node(depth + 1)) return false;
    } else if (!leaf(numbers, depth)) {
      return false;
    }
    pattern_.nodes[me].end = static_cast<std::uint32_t>(pattern_.nodes.size());
    return !bits_.is_past_end() || refuse("");
  }

  bool leaf(std::int64_t* numbers, std::size_t depth) {
    for (std::uint32_t column = 0; column < pattern_.columns; ++column)
      if (!number(numbers[column * (depth + 1)])) return false;
    for (std::uint32_t column = 0; column < pattern_.columns; ++column)
      for (std::size_t d = depth; d-- > 0;) {
        std::int64_t& factor = numbers[column * (depth + 1) + d + 1];
        if (bits_.take(1) == 0) continue;
        if (bits_.take(1) == 1)
          factor = expected_factor(numbers, column, pattern_.columns, d, depth, trips_);
        else if (!nonzero(factor))
          return false;
      }
    return true;
  }

  bool natural(std::uint64_t& value) {
    if (value = bits_.take_short_natural(); value > 0) return true;
    unsigned more = 0;
    while (bits_.take(1) == 0)
      if (++more == 64 || bits_.is_past_end()) return refuse("a number longer than 64 bits");
    value = std::uint64_t{1} << more | bits_.take(more);
    return true;
  }

  bool number(std::int64_t& value) { return bits_.take(1) == 0 || nonzero(value); }

  bool nonzero(std::int64_t& value) {
    const bool is_negative = bits_.take(1) == 1;
    std::uint64_t shift = 0, width = 0;
    if (!natural(shift) || !natural(width)) return false;
    --shift;
    if (shift > 63 || width > 64 - shift) return refuse("a number longer than 64 bits");
    std::uint64_t odd = 1;
    if (width > 1) odd |= std::uint64_t{1} << (width - 1);
    if (width > 2) odd |= bits_.take(static_cast<unsigned>(width) - 2) << 1;
    const std::uint64_t size = odd << shift, most = std::uint64_t{1} << 63;
    if (size > most || (size == most && !is_negative)) return refuse("a number that does not fit 64 bits");
    value = static_cast<std::int64_t>(is_negative ? 0 - size : size);
    return true;
  }

  Pattern& pattern_;
  BitReader bits_;
  Trips trips_{};
  std::string_view fault_;
};

}  // namespace

void append_nest(const Pattern& pattern, std::size_t term, std::vector<std::uint8_t>& bytes) {
  const auto root = static_cast<std::uint32_t>(pattern.terms[term].at);
  const NestSpan nest = nest_at(pattern, root);
  std::size_t nearest = 0, fewest = SIZE_MAX;  // by the number of differences; the nearer one of equals
  NestSpan like;
  for (std::size_t back = 0, before = term; before-- > 0 && back < max_back;) {
    if (!pattern.terms[before].is_nest) continue;
    ++back;
    const NestSpan other = nest_at(pattern, pattern.terms[before].at);
    if (!have_same_shape(nest, other)) continue;
    std::size_t unlike = 0;
    for (std::size_t n = 0; n < nest.numbers.size(); ++n) unlike += nest.numbers[n] != other.numbers[n] ? 1 : 0;
    if (unlike >= fewest) continue;
    fewest = unlike;
    nearest = back;
    like = other;
  }
  std::vector<std::uint8_t> alone, as_told;
  NestWriter(pattern, alone).write(root);
  if (nearest > 0) NestWriter(pattern, as_told).write(nest, like, nearest);
  const auto& shorter = nearest > 0 && as_told.size() < alone.size() ? as_told : alone;
  bytes.insert(bytes.end(), shorter.begin(), shorter.end());
}

tl::expected<std::size_t, std::string_view> read_nest(std::span<const std::uint8_t> bytes, Pattern& pattern) {
  return NestReader(bytes, pattern).read();
}

}  // namespace iosig
