// Nests made up at random, expanded by plain recursion: the oracle of patterns and detectors.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "iosig/model/pattern.h"

namespace iosig::testing {

inline constexpr std::array<std::int8_t, max_columns> follows_none = {-1, -1, -1, -1, -1, -1, -1, -1};

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// In [0, bound).
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(bound));
  }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;  // its numbers are the standard's, so the same everywhere
};

struct GeneratedNest {
  std::uint32_t columns = 1;
  std::vector<Node> nodes;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> vectors;  ///< what it stands for
  std::uint64_t count = 0;
};

namespace detail {

inline void generate(GeneratedNest& nest, Random& random, std::size_t depth, bool is_loop) {
  const std::size_t me = nest.nodes.size();
  nest.nodes.push_back({is_loop, 0, static_cast<std::uint32_t>(nest.numbers.size())});
  if (is_loop) {
    nest.numbers.push_back(1 + random.below(6));
    for (std::size_t d = 0; d < depth; ++d) nest.numbers.push_back(random.chance(25) ? random.below(3) - 1 : 0);
    const std::int64_t body = 1 + random.below(3);
    for (std::int64_t n = 0; n < body; ++n) generate(nest, random, depth + 1, depth < 3 && random.chance(50));
  } else {
    for (std::uint32_t column = 0; column < nest.columns; ++column) {
      nest.numbers.push_back(random.below(100000));
      for (std::size_t d = 0; d < depth; ++d)
        nest.numbers.push_back(random.chance(30) ? 0 : random.below(20000) - 10000);
    }
  }
  nest.nodes[me].end = static_cast<std::uint32_t>(nest.nodes.size());
}

inline void expand(GeneratedNest& nest, std::size_t node, std::vector<std::int64_t>& indices) {
  if (nest.vectors.size() > 100000) return;
  const std::int64_t* number = nest.numbers.data() + nest.nodes[node].numbers;
  const auto value = [&] {
    std::int64_t sum = *number++;
    for (const std::int64_t index : indices) sum += *number++ * index;
    return sum;
  };
  if (!nest.nodes[node].is_loop) {
    for (std::uint32_t column = 0; column < nest.columns; ++column) nest.vectors.push_back(value());
    return;
  }
  const std::int64_t trips = value();
  for (std::int64_t turn = 0; turn < trips; ++turn) {
    indices.push_back(turn);
    for (std::size_t child = node + 1; child < nest.nodes[node].end; child = nest.nodes[child].end)
      expand(nest, child, indices);
    indices.pop_back();
  }
}

}  // namespace detail

/// Up to 4 loops deep, some trip counts affine (and some of those unsound: below 0).
inline GeneratedNest generated_nest(Random& random) {
  GeneratedNest nest;
  nest.columns = static_cast<std::uint32_t>(1 + random.below(4));
  detail::generate(nest, random, 0, true);
  std::vector<std::int64_t> indices;
  detail::expand(nest, 0, indices);
  nest.count = nest.vectors.size() / nest.columns;
  return nest;
}

}  // namespace iosig::testing
