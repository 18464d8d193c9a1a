#include "iosig/analyze/overlap.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace iosig {
namespace {

constexpr std::size_t max_kinds = 64;  ///< of footprints with different moduli

/// A footprint on a circle, or on the line if `modulus` is 0.
struct Place {
  std::uint64_t start = 0, width = 0;
};

/// `arc`: 0 for the hull, otherwise the number of the arc, counted from 1.
Place place_of(const Footprint& footprint, std::size_t arc, std::uint64_t modulus) {
  const std::uint64_t width =
      arc == 0 ? static_cast<std::uint64_t>(footprint.end - footprint.begin) : footprint.arcs[arc - 1].width;
  const auto begin = static_cast<std::uint64_t>(footprint.begin);
  return modulus == 0 ? Place{begin, width} : Place{begin % modulus, std::min(width, modulus)};
}

std::uint64_t modulus_of(const Footprint& footprint, std::size_t arc) {
  return arc == 0 ? 0 : footprint.arcs[arc - 1].modulus;
}

/// Footprints of one kind, i.e. with the same moduli.
using Kind = std::vector<std::uint32_t>;

/// The positions at which the footprints of a kind begin on a circle, sorted.
class Starts {
 public:
  Starts(std::span<const Footprint> footprints, const Kind& kind, std::size_t arc, std::uint64_t modulus)
      : modulus_(modulus) {
    starts_.reserve(kind.size());
    for (const std::uint32_t n : kind) starts_.push_back({place_of(footprints[n], arc, modulus).start, n});
    std::ranges::sort(starts_);
  }

  /// Calls visit with iterators over the footprints that begin within `place`: one range, or two across the end of the
  /// circle.
  template <class Visit>
  void within(const Place& place, Visit&& visit) const {
    const auto at = [&](std::uint64_t start) {
      return std::ranges::lower_bound(starts_, std::pair{start, std::uint32_t{0}});
    };
    const std::uint64_t end = place.start + place.width;  // at most 2^64 - 2
    if (modulus_ == 0 || end <= modulus_) return visit(at(place.start), at(end));
    visit(at(place.start), starts_.end());
    visit(starts_.begin(), at(end - modulus_));
  }

 private:
  std::uint64_t modulus_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> starts_;
};

/// Two kinds on one circle. Two arcs overlap if one of them begins within the other.
class Comparison {
 public:
  Comparison(std::span<const Footprint> footprints, const Kind& a, const Kind& b, std::size_t arc_a, std::size_t arc_b)
      : footprints_(footprints),
        a_(a),
        b_(b),
        arc_a_(arc_a),
        arc_b_(arc_b),
        modulus_(std::gcd(modulus_of(footprints[a[0]], arc_a), modulus_of(footprints[b[0]], arc_b))),
        starts_a_(footprints, a, arc_a, modulus_),
        starts_b_(footprints, b, arc_b, modulus_) {}

  [[nodiscard]] std::uint64_t pairs() const {
    std::uint64_t count = 0;
    for_each([&](std::uint32_t, auto first, auto last) { count += static_cast<std::uint64_t>(last - first); });
    return count;
  }
  template <class Visit>
  void for_each_pair(Visit&& visit) const {
    for_each([&](std::uint32_t n, auto first, auto last) {
      for (; first != last; ++first) visit(n, first->second);
    });
  }

 private:
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::uint32_t n : a_)
      starts_b_.within(place_of(footprints_[n], arc_a_, modulus_),
                       [&](auto first, auto last) { visit(n, first, last); });
    if (&a_ == &b_) return;
    for (const std::uint32_t n : b_)
      starts_a_.within(place_of(footprints_[n], arc_b_, modulus_),
                       [&](auto first, auto last) { visit(n, first, last); });
  }

  std::span<const Footprint> footprints_;
  const Kind &a_, &b_;
  std::size_t arc_a_, arc_b_;
  std::uint64_t modulus_;
  Starts starts_a_, starts_b_;
};

std::vector<Kind> kinds_of(std::span<const Footprint> footprints) {
  std::map<std::array<std::uint64_t, Footprint::max_arcs>, Kind> by_moduli;
  for (std::uint32_t n = 0; n < footprints.size(); ++n) {
    std::array<std::uint64_t, Footprint::max_arcs> moduli{};
    for (std::size_t arc = 0; arc < footprints[n].arc_count; ++arc) moduli[arc] = footprints[n].arcs[arc].modulus;
    by_moduli[moduli].push_back(n);
  }
  std::vector<Kind> kinds;
  for (auto& [moduli, kind] : by_moduli) kinds.push_back(std::move(kind));
  return kinds;
}

/// A circle on which two kinds are compared: an arc of each.
struct Circle {
  std::size_t arc_a = 0, arc_b = 0;
  std::uint64_t pairs = 0;  ///< that overlap there
};

/// Returns the circle with the fewest overlapping pairs. Without arcs there is only the line: the ranges of bytes.
///
/// Example: writers in turns, with records of 1 KiB and a stride of 64 KiB. On the line every two ranges overlap; on
/// the circle of 64 KiB none do.
Circle best_circle(std::span<const Footprint> footprints, const Kind& a, const Kind& b, bool with_arcs) {
  Circle best{0, 0, Comparison(footprints, a, b, 0, 0).pairs()};
  if (!with_arcs) return best;
  for (std::size_t arc_a = 0; arc_a <= footprints[a[0]].arc_count; ++arc_a)
    for (std::size_t arc_b = 0; arc_b <= footprints[b[0]].arc_count; ++arc_b) {
      if (&a == &b ? arc_a != arc_b : arc_a + arc_b == 0) continue;
      const std::uint64_t pairs = Comparison(footprints, a, b, arc_a, arc_b).pairs();
      if (pairs < best.pairs) best = {arc_a, arc_b, pairs};
    }
  return best;
}

}  // namespace

Footprint Footprint::of(const LeafIndex& leaves, const LeafIndex::Leaf& leaf) {
  Footprint footprint = of(leaf.begin, leaf.end);
  // If trip counts are affine or lengths vary, base may lie below begin, and arcs begin at base.
  if (leaf.base != leaf.begin) return footprint;
  std::uint64_t modulus = 0;
  for (const LeafIndex::Level& level : leaves.levels_of(leaf)) {
    if (level.stride == 0 || footprint.arc_count == max_arcs) break;
    modulus = std::gcd(modulus, level.stride);
    if (level.reach > modulus) continue;
    // Same modulus as before, but narrower.
    if (footprint.arc_count > 0 && footprint.arcs[footprint.arc_count - 1].modulus == modulus)
      footprint.arcs[footprint.arc_count - 1].width = level.reach;
    else
      footprint.arcs[footprint.arc_count++] = {modulus, level.reach};
  }
  return footprint;
}

bool may_overlap(const Footprint& a, const Footprint& b) {
  if (a.end <= b.begin || b.end <= a.begin) return false;
  for (std::size_t arc_a = 0; arc_a <= a.arc_count; ++arc_a)
    for (std::size_t arc_b = 0; arc_b <= b.arc_count; ++arc_b) {
      const std::uint64_t modulus = std::gcd(modulus_of(a, arc_a), modulus_of(b, arc_b));
      if (modulus == 0) continue;
      const Place one = place_of(a, arc_a, modulus), other = place_of(b, arc_b, modulus);
      const std::uint64_t distance = (other.start + modulus - one.start) % modulus;
      if (distance >= one.width && other.width <= modulus - distance) return false;
    }
  return true;
}

bool for_each_overlap(std::span<const Footprint> footprints, std::uint64_t budget,
                      const std::function<void(std::size_t, std::size_t)>& visit) {
  const auto compare = [&](const Kind& a, const Kind& b, bool with_arcs) {
    const Circle best = best_circle(footprints, a, b, with_arcs);
    if (best.pairs > budget) return false;
    budget -= best.pairs;
    Comparison(footprints, a, b, best.arc_a, best.arc_b).for_each_pair([&](std::uint32_t one, std::uint32_t other) {
      if (footprints[one].group != footprints[other].group && may_overlap(footprints[one], footprints[other]))
        visit(one, other);
    });
    return true;
  };
  const std::vector<Kind> kinds = kinds_of(footprints);
  if (kinds.size() > max_kinds) {  // too many to compare each with each: all at once, by their ranges
    Kind all(footprints.size());
    std::iota(all.begin(), all.end(), 0);
    return compare(all, all, false);
  }
  for (std::size_t a = 0; a < kinds.size(); ++a)
    for (std::size_t b = a; b < kinds.size(); ++b)
      if (!compare(kinds[a], kinds[b], true)) return false;
  return true;
}

}  // namespace iosig
