#include "iosig/model/nest_count.h"

#include <algorithm>
#include <utility>

namespace iosig {
namespace nest_count {
namespace {

/// Returns the degree of `node`'s elements, or of the sums over them, as a polynomial in the index of one loop around
/// it. `by`: a bit for that loop and for each loop whose trip count depends on it, directly or indirectly.
unsigned degree(const NestView& nest, std::uint32_t node, std::size_t depth, std::uint32_t by, bool of_sums) {
  const Node& it = nest.nodes[node];
  const auto hangs = [&](const std::int64_t* numbers) {
    for (std::size_t d = 0; d < depth; ++d)
      if ((by >> d & 1) != 0 && numbers[d + 1] != 0) return true;
    return false;
  };
  if (!it.is_loop) {
    for (std::uint32_t column = 0; of_sums && column < nest.columns; ++column)
      if (hangs(nest.numbers + it.numbers + column * (depth + 1))) return 1;
    return 0;
  }
  const bool is_affine = hangs(nest.numbers + it.numbers);
  if (is_affine) by |= 1u << depth;
  unsigned most = 0;
  for (std::uint32_t child = node + 1; child < it.end; child = nest.nodes[child].end)
    most = std::max(most, degree(nest, child, depth + 1, by, of_sums));
  return most + (is_affine ? 1 : 0);
}

/// Returns the tally of one iteration of `loop`, which is at at[depth].
Tally body_tally(const NestView& nest, std::uint32_t loop, Indices& at, std::size_t depth) {
  Tally total{0, 1};
  for (std::uint32_t child = loop + 1; child < nest.nodes[loop].end; child = nest.nodes[child].end)
    total.add(tally_of(nest, child, at, depth + 1));
  return total;
}

}  // namespace

unsigned body_degree(const NestView& nest, std::uint32_t loop, std::size_t depth, bool of_sums) {
  unsigned most = 0;
  for (std::uint32_t child = loop + 1; child < nest.nodes[loop].end; child = nest.nodes[child].end)
    most = std::max(most, degree(nest, child, depth + 1, 1u << depth, of_sums));
  return most;
}

std::uint64_t evaluations(const NestView& nest, std::uint32_t node, std::size_t depth, std::uint64_t enough) {
  if (!nest.nodes[node].is_loop) return 1;
  std::uint64_t most = 1;
  for (std::uint32_t child = node + 1; child < nest.nodes[node].end && most < enough; child = nest.nodes[child].end)
    most = std::max(most, evaluations(nest, child, depth + 1, enough));
  return most < enough ? most * (body_degree(nest, node, depth, false) + 1) : most;
}

Differences differences_of(const NestView& nest, std::uint32_t loop, Indices& at, std::size_t depth, std::int64_t t) {
  Differences found;
  found.degree = std::min<unsigned>(body_degree(nest, loop, depth, false), max_affine_depth + 1);
  const auto values = static_cast<unsigned>(std::min<std::int64_t>(t, found.degree + 1));
  for (unsigned x = 0; x < values; ++x) {
    at[depth] = x;
    found.of[x] = body_tally(nest, loop, at, depth);
  }
  for (unsigned k = 1; k < values; ++k)
    for (unsigned x = values - 1; x >= k; --x) found.of[x].subtract(found.of[x - 1]);
  return found;
}

Tally tally_of(const NestView& nest, std::uint32_t node, Indices& at, std::size_t depth) {
  if (!nest.nodes[node].is_loop) return {1, 0};
  const std::int64_t trips = affine(nest.numbers + nest.nodes[node].numbers, at.data(), depth);
  if (trips <= 0) return {};
  return differences_of(nest, node, at, depth, trips).sum(trips);
}

}  // namespace nest_count

namespace {

using namespace nest_count;

/// Returns C(t, k) modulo 2^64 for small k. Cancels the factors of k! from those of t (t - 1) ... before multiplying,
/// so the result is exact.
std::uint64_t binomial(std::int64_t t, unsigned k) {
  std::array<std::uint64_t, 8> factors{};
  for (unsigned i = 0; i < k; ++i) factors[i] = static_cast<std::uint64_t>(t) - i;
  for (std::uint64_t divisor = 2; divisor <= k; ++divisor) {
    std::uint64_t left = divisor;
    for (unsigned i = 0; i < k && left > 1; ++i) {
      std::uint64_t a = factors[i], b = left;
      while (b != 0) a = std::exchange(b, a % b);
      factors[i] /= a;
      left /= a;
    }
  }
  std::uint64_t product = 1;
  for (unsigned i = 0; i < k; ++i) product *= factors[i];
  return product;
}

using Sums = std::array<std::uint64_t, max_columns>;

/// Sums the columns over parts of a nest, modulo 2^64. A loop on which no trip count depends is not evaluated at
/// several indices: its leaves are linear in the index and count by their mean, with C(trips, 2) as the sum of the
/// indices.
class Summer {
 public:
  explicit Summer(const NestView& nest) : nest_(nest) {}

  Indices at{};
  Sums total{};

  void add(std::uint32_t node, std::size_t depth) {
    const std::int64_t* numbers = nest_.numbers + nest_.nodes[node].numbers;
    if (nest_.nodes[node].is_loop) return add_loop(node, depth, affine(numbers, at.data(), depth));
    std::uint64_t times = 1;
    for (std::size_t d = 0; d < depth; ++d) times *= mean_over_[d] > 0 ? static_cast<std::uint64_t>(mean_over_[d]) : 1;
    for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth + 1)
      total[column] += times * static_cast<std::uint64_t>(affine(numbers, at.data(), depth));
    for (std::size_t d = 0; d < depth; ++d) {
      if (mean_over_[d] == 0) continue;
      std::uint64_t others = 1;
      for (std::size_t e = 0; e < depth; ++e)
        others *= e != d && mean_over_[e] > 0 ? static_cast<std::uint64_t>(mean_over_[e]) : 1;
      numbers = nest_.numbers + nest_.nodes[node].numbers + d + 1;
      for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth + 1)
        total[column] += others * binomial(mean_over_[d], 2) * static_cast<std::uint64_t>(*numbers);
    }
  }

  /// Adds the first `trips` turns of `loop`.
  void add_loop(std::uint32_t loop, std::size_t depth, std::int64_t trips) {
    if (trips <= 0) return;
    if (body_degree(nest_, loop, depth, false) == 0) {
      at[depth] = 0;
      mean_over_[depth] = trips;
      add_body(loop, depth);
      mean_over_[depth] = 0;
      return;
    }
    const unsigned most = std::min<unsigned>(body_degree(nest_, loop, depth, true), max_affine_depth + 1);
    const auto values = static_cast<unsigned>(std::min<std::int64_t>(trips, most + 1));
    const Sums before = total;
    std::array<Sums, max_affine_depth + 2> of{};
    for (unsigned x = 0; x < values; ++x) {
      at[depth] = x;
      total = {};
      add_body(loop, depth);
      of[x] = total;
    }
    total = before;
    for (unsigned k = 0; k < values; ++k) {
      const std::uint64_t choose = binomial(trips, k + 1);
      for (std::uint32_t column = 0; column < nest_.columns; ++column) {
        total[column] += choose * of[k][column];
        for (unsigned x = values - 1; x > k; --x) of[x][column] -= of[x - 1][column];
      }
    }
  }

 private:
  void add_body(std::uint32_t loop, std::size_t depth) {
    for (std::uint32_t child = loop + 1; child < nest_.nodes[loop].end; child = nest_.nodes[child].end)
      add(child, depth + 1);
  }

  const NestView& nest_;
  Indices mean_over_{};  ///< trips of the loops that count by their mean; 0: the loop is at its index
};

Indices indices_of(std::span<const std::int64_t> outer) {
  Indices at{};
  std::ranges::copy(outer, at.begin());
  return at;
}

/// Returns the nodes of a loop's body if they are leaves only; 0 for others.
std::uint64_t leaves_of_row(const NestView& nest, std::uint32_t loop) {
  if (!nest.nodes[loop].is_loop) return 0;
  for (std::uint32_t node = loop + 1; node < nest.nodes[loop].end; ++node)
    if (nest.nodes[node].is_loop) return 0;
  return nest.nodes[loop].end - loop - 1;
}

}  // namespace

std::uint64_t count_of(const NestView& nest, std::uint32_t node, std::span<const std::int64_t> outer) {
  if (const std::uint64_t leaves = outer.empty() ? leaves_of_row(nest, node) : 0; leaves > 0)
    return leaves * static_cast<std::uint64_t>(nest.numbers[nest.nodes[node].numbers]);
  Indices at = indices_of(outer);
  return static_cast<std::uint64_t>(tally_of(nest, node, at, outer.size()).elements);
}

std::uint64_t count_before(const NestView& nest, std::uint32_t node, std::span<const std::int64_t> outer,
                           std::int64_t index) {
  if (index <= 0) return 0;
  Indices at = indices_of(outer);
  return static_cast<std::uint64_t>(differences_of(nest, node, at, outer.size(), index).sum(index).elements);
}

Sums sums_of(const NestView& nest, std::uint32_t root, std::uint64_t count) {
  Summer summer(nest);
  if (count == count_of(nest, root, {})) {
    summer.add(root, 0);
    return summer.total;
  }
  NestWalk walk;
  walk.seek(nest, root, count);  // before that leaf: per loop its whole turns, then nodes of its body
  for (std::size_t d = 0; d < walk.depth(); ++d) {
    summer.add_loop(walk.loop(d), d, walk.index(d));
    summer.at[d] = walk.index(d);
    const std::uint32_t within = d + 1 < walk.depth() ? walk.loop(d + 1) : walk.leaf();
    for (std::uint32_t node = walk.loop(d) + 1; node != within; node = nest.nodes[node].end) summer.add(node, d + 1);
  }
  return summer.total;
}

}  // namespace iosig
