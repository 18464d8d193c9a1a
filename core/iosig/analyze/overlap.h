// Which of many sets of accesses may share bytes: by hulls and by residues, without expanding them.
//
// A leaf of a nest writes base + s1 i1 + .. + sd id and some bytes from there. Modulo the greatest common divisor of
// its greatest strides only the others are left, so it lies in one short arc of a circle; what lies in another arc of a
// circle that divides both never meets it. So thousands of ranks that write in turns are told apart by sorting.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "iosig/analyze/lookup_leaf.h"

namespace iosig {

/// Bytes that a batch of accesses may touch: within [begin, end), and within each arc.
struct Footprint {
  /// All bytes are, modulo `modulus`, among the `width` <= modulus ones from `base` on.
  struct Arc {
    std::uint64_t modulus = 0, width = 0;
  };
  static constexpr std::size_t max_arcs = 4;

  std::int64_t begin = 0, end = 0;
  std::array<Arc, max_arcs> arcs{};  ///< moduli fall
  std::uint8_t arc_count = 0;
  std::uint32_t owner = 0;  ///< what wrote there: the caller's own number
  std::int64_t group = 0;   ///< footprints of one group are not compared

  static Footprint of(std::int64_t begin, std::int64_t end) { return {begin, end, {}, 0, 0, 0}; }
  static Footprint of(const LeafIndex& leaves, const LeafIndex::Leaf& leaf);
};

/// Whether two footprints may share a byte; false is certain.
[[nodiscard]] bool may_overlap(const Footprint& a, const Footprint& b);

/// Calls visit(a, b), indices into `footprints`, for all pairs of unlike groups for which may_overlap(); some of them
/// twice. n log n where few pairs are in doubt. False, and not all of them visited, when more than `budget` pairs would
/// have to be compared one by one.
[[nodiscard]] bool for_each_overlap(std::span<const Footprint> footprints, std::uint64_t budget,
                                    const std::function<void(std::size_t, std::size_t)>& visit);

}  // namespace iosig
