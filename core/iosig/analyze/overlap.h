// Finds the sets of accesses that may share bytes, by hulls and residues and without expanding them.
//
// A leaf of a nest writes some bytes at base + s1 i1 + .. + sd id. Modulo the greatest common divisor of its largest
// strides only the other terms remain, so the leaf lies in a short arc of a circle. It cannot overlap a leaf in a
// disjoint arc of a circle whose circumference divides both moduli. Sorting thus separates thousands of ranks that
// write in turns.
//
// Example: rank r of n writes s bytes at (r + i n) s for all i; modulo n s, its arc is [r s, r s + s).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "iosig/analyze/lookup_leaf.h"

namespace iosig {

/// The bytes that a batch of accesses may touch: within [begin, end), and within each arc.
struct Footprint {
  /// Modulo `modulus`, all bytes are among the `width` <= modulus ones from `base` on.
  struct Arc {
    std::uint64_t modulus = 0, width = 0;
  };
  static constexpr std::size_t max_arcs = 4;

  std::int64_t begin = 0, end = 0;
  std::array<Arc, max_arcs> arcs{};  ///< moduli descend
  std::uint8_t arc_count = 0;
  std::uint32_t owner = 0;  ///< the batch, numbered by the caller
  std::int64_t group = 0;   ///< footprints of one group are not compared

  static Footprint of(std::int64_t begin, std::int64_t end) { return {begin, end, {}, 0, 0, 0}; }
  static Footprint of(const LeafIndex& leaves, const LeafIndex::Leaf& leaf);
};

/// Returns whether two footprints may share a byte; false is certain.
[[nodiscard]] bool may_overlap(const Footprint& a, const Footprint& b);

/// Calls visit(a, b) with indices of `footprints` for each pair of different groups for which may_overlap(), for some
/// pairs twice. Takes O(n log n) if few pairs are in doubt. Returns false, with some pairs not visited, if more than
/// `budget` pairs would have to be compared one by one.
[[nodiscard]] bool for_each_overlap(std::span<const Footprint> footprints, std::uint64_t budget,
                                    const std::function<void(std::size_t, std::size_t)>& visit);

}  // namespace iosig
