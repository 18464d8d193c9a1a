#include "iosig/model/nest.h"

#include <algorithm>
#include <utility>

namespace iosig {
namespace {

using Indices = std::array<std::int64_t, most_nest_depth>;
constexpr std::uint64_t most_evaluations = 1024;  ///< of a nest's leaves, to count it

/// C(t, k) modulo 2^64 for small k: the k factors of k! are taken out of those of t (t - 1) ... before they are
/// multiplied, so that nothing is lost.
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

bool is_constant(const NestView& nest, std::uint32_t loop, std::size_t depth) {
  const std::int64_t* numbers = nest.numbers + nest.nodes[loop].numbers;
  return std::all_of(numbers + 1, numbers + 1 + depth, [](std::int64_t n) { return n == 0; });
}

/// Degree of what `node` stands for (elements, or the sums over them) as a polynomial in the index of one loop around
/// it. `by`: a bit for that loop, and for each whose trip count hangs on it, by way of others or not.
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

/// The same of the body of `loop`, in its own index.
unsigned body_degree(const NestView& nest, std::uint32_t loop, std::size_t depth, bool of_sums) {
  unsigned most = 0;
  for (std::uint32_t child = loop + 1; child < nest.nodes[loop].end; child = nest.nodes[child].end)
    most = std::max(most, degree(nest, child, depth + 1, 1u << depth, of_sums));
  return most;
}

/// How often the count of a nest counts its leaves; at most about `enough`.
std::uint64_t evaluations(const NestView& nest, std::uint32_t node, std::size_t depth, std::uint64_t enough) {
  if (!nest.nodes[node].is_loop) return 1;
  std::uint64_t most = 1;
  for (std::uint32_t child = node + 1; child < nest.nodes[node].end && most < enough; child = nest.nodes[child].end)
    most = std::max(most, evaluations(nest, child, depth + 1, enough));
  return most < enough ? most * (body_degree(nest, node, depth, false) + 1) : most;
}

// Sums of a polynomial P of known degree over 0 <= x < t, from its values at 0, 1, .., degree: Newton's forward
// differences, sum = C(t, 1) P(0) + C(t, 2) dP(0) + C(t, 3) ddP(0) + ..; all integers.

/// Elements and iterations, exact. `overflow` says that they are too many to say.
struct Tally {
  __int128 elements = 0, iterations = 0;
  bool overflow = false;

  void add(const Tally& more) {
    overflow |= more.overflow;
    overflow |= __builtin_add_overflow(elements, more.elements, &elements);
    overflow |= __builtin_add_overflow(iterations, more.iterations, &iterations);
  }
  void subtract(const Tally& less) {
    overflow |= less.overflow;
    overflow |= __builtin_sub_overflow(elements, less.elements, &elements);
    overflow |= __builtin_sub_overflow(iterations, less.iterations, &iterations);
  }
  [[nodiscard]] Tally times(__int128 factor) const {
    Tally product = *this;
    product.overflow |= __builtin_mul_overflow(elements, factor, &product.elements);
    product.overflow |= __builtin_mul_overflow(iterations, factor, &product.iterations);
    return product;
  }
};

struct Differences {
  std::array<Tally, most_affine_depth + 2> of{};
  unsigned degree = 0;

  [[nodiscard]] Tally sum(std::int64_t t) const {
    Tally total;
    __int128 choose = 1;
    bool is_too_many = false;
    for (unsigned k = 0; k <= degree && k < t; ++k) {
      is_too_many |= __builtin_mul_overflow(choose, static_cast<__int128>(t) - k, &choose);
      choose /= k + 1;
      total.add(of[k].times(choose));
    }
    total.overflow |= is_too_many;
    return total;
  }
};

Tally tally_of(const NestView& nest, std::uint32_t node, Indices& at, std::size_t depth);

/// Of one iteration of `loop`, which is at at[depth].
Tally body_tally(const NestView& nest, std::uint32_t loop, Indices& at, std::size_t depth) {
  Tally total{0, 1};
  for (std::uint32_t child = loop + 1; child < nest.nodes[loop].end; child = nest.nodes[child].end)
    total.add(tally_of(nest, child, at, depth + 1));
  return total;
}

/// Values at up to `t` iterations only: further ones may not be counted.
Differences differences_of(const NestView& nest, std::uint32_t loop, Indices& at, std::size_t depth, std::int64_t t) {
  Differences found;
  found.degree = std::min<unsigned>(body_degree(nest, loop, depth, false), most_affine_depth + 1);
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

using Sums = std::array<std::uint64_t, most_columns>;

/// Adds up the columns over parts of a nest, modulo 2^64. A loop that no trip count hangs on is not evaluated at
/// several indices: its leaves, linear in the index, count by their mean, the sum of the indices being C(trips, 2).
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

  /// The first `trips` turns of `loop`.
  void add_loop(std::uint32_t loop, std::size_t depth, std::int64_t trips) {
    if (trips <= 0) return;
    if (body_degree(nest_, loop, depth, false) == 0) {
      at[depth] = 0;
      mean_over_[depth] = trips;
      add_body(loop, depth);
      mean_over_[depth] = 0;
      return;
    }
    const unsigned most = std::min<unsigned>(body_degree(nest_, loop, depth, true), most_affine_depth + 1);
    const auto values = static_cast<unsigned>(std::min<std::int64_t>(trips, most + 1));
    const Sums before = total;
    std::array<Sums, most_affine_depth + 2> of{};
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

/// Checks a nest from the outside in, so that bounds are sought over loops that are known to be sound.
class Checker {
 public:
  Checker(const NestView& nest, std::uint32_t root, std::optional<std::int64_t> trips) : nest_(nest), root_(root) {
    trips_[0] = trips ? &*(root_trips_ = trips) : nest.numbers + nest.nodes[root].numbers;
  }

  std::string fault() {
    if (!nest_.nodes[root_].is_loop) return "a nest must begin with a loop";
    if (std::string found = loop_fault(root_, 0, 0); !found.empty()) return found;
    if (evaluations(nest_, root_, 0, most_evaluations) >= most_evaluations)
      return "trip counts that depend on too many loops";
    Indices at{};
    const Tally total = differences_of(nest_, root_, at, 0, *trips_[0]).sum(*trips_[0]);
    if (total.overflow || total.elements > static_cast<__int128>(most_elements)) return "more than 2^63 - 1 elements";
    if (total.iterations > 1000 * total.elements) return "more than 1000 iterations for each element";
    return "";
  }

 private:
  struct Range {
    __int128 low = 0, high = 0;
    bool overflow = false;
  };

  /// The least or the greatest value that n0 + n1 i1 + .. + nd id takes: linear in the innermost index, so at one end
  /// of its range, which is affine in the others.
  bool extreme(const std::int64_t* numbers, std::size_t depth, bool greatest, __int128& value) const {
    std::array<__int128, most_nest_depth + 1> form{};
    std::copy(numbers, numbers + depth + 1, form.begin());
    for (std::size_t d = depth; d > 0; --d) {
      const __int128 slope = form[d];
      if (greatest ? slope <= 0 : slope >= 0) continue;  // at index 0
      for (std::size_t e = 0; e < d; ++e) {              // at index trips - 1
        __int128 part = trips_[d - 1][e];
        if (e == 0) part -= 1;
        if (__builtin_mul_overflow(part, slope, &part) || __builtin_add_overflow(form[e], part, &form[e])) return false;
      }
    }
    value = form[0];
    return true;
  }

  [[nodiscard]] Range range(const std::int64_t* numbers, std::size_t depth) const {
    Range found;
    found.overflow = !extreme(numbers, depth, false, found.low) || !extreme(numbers, depth, true, found.high);
    return found;
  }

  std::string loop_fault(std::uint32_t loop, std::size_t depth, unsigned affine_loops) {
    if (depth >= most_nest_depth) return fmt::format("more than {} loops in each other", most_nest_depth);
    if (depth > 0) trips_[depth] = nest_.numbers + nest_.nodes[loop].numbers;
    if (depth > 0 && !is_constant(nest_, loop, depth) && ++affine_loops > most_affine_depth)
      return fmt::format("more than {} loops in each other whose trip count depends on others", most_affine_depth);
    const Range trips = range(trips_[depth], depth);
    if (trips.overflow || trips.high > INT64_MAX) return "a trip count above 2^63 - 1";
    if (trips.low < 0) return "a trip count that falls below 0";
    if (trips.high == 0) return "a loop that never turns";
    if (nest_.nodes[loop].end <= loop + 1) return "a loop without a body";
    for (std::uint32_t child = loop + 1; child < nest_.nodes[loop].end; child = nest_.nodes[child].end) {
      std::string found =
          nest_.nodes[child].is_loop ? loop_fault(child, depth + 1, affine_loops) : leaf_fault(child, depth + 1);
      if (!found.empty()) return found;
    }
    return "";
  }

  [[nodiscard]] std::string leaf_fault(std::uint32_t leaf, std::size_t depth) const {
    const std::int64_t* numbers = nest_.numbers + nest_.nodes[leaf].numbers;
    for (std::uint32_t column = 0; column < nest_.columns; ++column, numbers += depth + 1) {
      const Range values = range(numbers, depth);
      if (values.overflow || values.low < INT64_MIN || values.high > INT64_MAX)
        return fmt::format("values of column {} that do not fit 64 bits", column + 1);
    }
    return "";
  }

  NestView nest_;
  std::uint32_t root_;
  std::optional<std::int64_t> root_trips_;
  std::array<const std::int64_t*, most_nest_depth> trips_{};
};

}  // namespace

void NestWalk::start(const NestView& nest, std::uint32_t root, std::int64_t index, std::int64_t trips) {
  nest_ = nest;
  root_ = root;
  depth_ = 0;
  trips_[0] = trips;
  if (index >= trips) return;
  enter(root, index, trips);
  settle(root + 1);
}

void NestWalk::go_on(std::int64_t trips) {
  const std::int64_t index = trips_[0];
  if (index >= trips) return;
  enter(root_, index, trips);
  settle(root_ + 1);
}

/// Finds the first leaf from `node` on.
void NestWalk::settle(std::uint32_t node) {
  for (;;) {
    while (node == nest_.nodes[loop_[depth_ - 1]].end) {
      const std::size_t inner = depth_ - 1;
      if (++index_[inner] < trips_[inner]) {
        node = loop_[inner] + 1;
      } else {
        --depth_;
        if (depth_ == 0) return;
      }
    }
    if (!nest_.nodes[node].is_loop) {
      leaf_ = node;
      return;
    }
    const std::int64_t trips = affine(nest_.numbers + nest_.nodes[node].numbers, index_.data(), depth_);
    if (trips <= 0) {
      node = nest_.nodes[node].end;
    } else {
      enter(node, 0, trips);
      ++node;
    }
  }
}

void NestWalk::seek(const NestView& nest, std::uint32_t root, std::uint64_t offset) {
  nest_ = nest;
  root_ = root;
  depth_ = 0;
  Indices at{};
  auto left = static_cast<__int128>(offset);
  for (std::uint32_t node = root; nest.nodes[node].is_loop;) {
    const std::int64_t trips = affine(nest.numbers + nest.nodes[node].numbers, at.data(), depth_);
    const Differences body = differences_of(nest, node, at, depth_, trips);
    std::int64_t index = 0;
    if (body.degree == 0) {
      index = static_cast<std::int64_t>(left / body.of[0].elements);
    } else {
      std::int64_t above = trips;  // the last iteration that does not begin after `left`: in [index, above)
      while (above - index > 1) {
        const std::int64_t middle = index + (above - index) / 2;
        (body.sum(middle).elements <= left ? index : above) = middle;
      }
    }
    left -= body.sum(index).elements;
    at[depth_] = index;
    enter(node, index, trips);
    ++node;
    for (__int128 count = 0; left >= (count = tally_of(nest, node, at, depth_).elements); node = nest.nodes[node].end)
      left -= count;
    leaf_ = node;
  }
}

std::uint64_t count_of(const NestView& nest, std::uint32_t node, std::span<const std::int64_t> outer) {
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
  walk.seek(nest, root, count);  // what comes before that leaf: per loop its whole turns, then its body's nodes
  for (std::size_t d = 0; d < walk.depth(); ++d) {
    summer.add_loop(walk.loop(d), d, walk.index(d));
    summer.at[d] = walk.index(d);
    const std::uint32_t within = d + 1 < walk.depth() ? walk.loop(d + 1) : walk.leaf();
    for (std::uint32_t node = walk.loop(d) + 1; node != within; node = nest.nodes[node].end) summer.add(node, d + 1);
  }
  return summer.total;
}

std::string fault_of(const NestView& nest, std::uint32_t root, std::optional<std::int64_t> trips) {
  return Checker(nest, root, trips).fault();
}

}  // namespace iosig
