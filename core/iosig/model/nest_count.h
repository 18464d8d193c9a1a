// Closed-form counting of nests, shared by model/nest, its checks and its sums.
#pragma once

#include <array>
#include <cstdint>

#include "iosig/model/nest.h"

namespace iosig::nest_count {

using Indices = std::array<std::int64_t, max_nest_depth>;

/// Returns the degree, as a polynomial in the loop's index, of the elements in the body of `loop` or of the sums over
/// them.
[[nodiscard]] unsigned body_degree(const NestView& nest, std::uint32_t loop, std::size_t depth, bool of_sums);

/// Returns how often counting `node` visits its leaves, or a value of at least `enough`.
[[nodiscard]] std::uint64_t evaluations(const NestView& nest, std::uint32_t node, std::size_t depth,
                                        std::uint64_t enough);

// Sums of a polynomial P of known degree over 0 <= x < t, from its values at 0, 1, .., degree: Newton's forward
// differences, sum = C(t, 1) P(0) + C(t, 2) dP(0) + C(t, 3) ddP(0) + ..; all integers.

/// Exact numbers of elements and iterations. `overflow`: they are too many to represent.
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

/// The forward differences of the tallies of a loop's body at index 0, 1, ..
struct Differences {
  std::array<Tally, max_affine_depth + 2> of{};
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

/// Returns the tally of `node` within loops at `at`.
[[nodiscard]] Tally tally_of(const NestView& nest, std::uint32_t node, Indices& at, std::size_t depth);
/// Returns the differences of the body of `loop`. Evaluates at most `t` iterations: later ones may not be countable.
[[nodiscard]] Differences differences_of(const NestView& nest, std::uint32_t loop, Indices& at, std::size_t depth,
                                         std::int64_t t);

}  // namespace iosig::nest_count
