// Prepares the leaves of a nest for lookup: columns become affine forms of the loops, and loops are sorted by stride.
#include <algorithm>
#include <numeric>

#include "iosig/analyze/lookup_leaf.h"
#include "iosig/analyze/nest_forms.h"

namespace iosig {
namespace {

using Wide = __int128;

constexpr std::uint64_t max_candidates = 1 << 16;  ///< elements of a leaf to be examined for one byte

std::uint64_t saturated(Wide value) { return value > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(value); }

}  // namespace

class LeafMaker {
 public:
  LeafMaker(LeafIndex& into, std::uint32_t term, const PatternIndex& index)
      : into_(into),
        pattern_(*into.pattern_),
        term_(term),
        forms_(index, term,
               std::array{into.columns_.logical, into.columns_.length, into.columns_.physical, into.columns_.id}) {
    const Term& it = pattern_.terms[term];
    const auto exception = [&](std::uint64_t position) {
      return static_cast<std::uint32_t>(std::ranges::lower_bound(pattern_.exception_positions, position) -
                                        pattern_.exception_positions.begin());
    };
    exceptions_ = exception(it.first);
    exceptions_end_ = exception(it.first + it.count);
  }

  std::string make() { return visit(forms_.root(), pattern_.terms[term_].first); }

 private:
  using Leaf = LeafIndex::Leaf;
  using Level = LeafIndex::Level;

  const std::int64_t* numbers(std::uint32_t node) const {
    return pattern_.numbers.data() + pattern_.nodes[node].numbers;
  }

  /// Indexes the leaves in `loop`. `position`: of its first element (used if trip counts are constant).
  std::string visit(std::uint32_t loop, std::uint64_t position) {
    path_.push_back(loop);
    for (std::uint32_t child = loop + 1; child < pattern_.nodes[loop].end; child = pattern_.nodes[child].end) {
      std::string fault = pattern_.nodes[child].is_loop ? visit(child, position) : add(child, position);
      if (!fault.empty()) return fault;
      if (forms_.is_constant()) position += forms_.count(child);
    }
    path_.pop_back();
    return "";
  }

  /// Returns the least or the greatest value of base + of[0] i0 + .. over `depth` loops. It lies at one end of the
  /// innermost loop's range, which is affine in the others. The bound is loose where a loop has no turns. Returns
  /// nothing on overflow of 128 bits.
  std::optional<Wide> extreme(Wide base, const std::array<Wide, max_nest_depth>& of, std::size_t depth,
                              bool greatest) const {
    std::array<Wide, max_nest_depth> slopes = of;
    for (std::size_t d = depth; d-- > 0;) {
      const Wide slope = slopes[d];
      if (greatest ? slope <= 0 : slope >= 0) continue;
      const std::int64_t* trips = numbers(path_[d]);
      Wide part = 0;
      if (__builtin_mul_overflow(Wide{trips[0]} - 1, slope, &part) || __builtin_add_overflow(base, part, &base))
        return std::nullopt;
      for (std::size_t e = 0; e < d; ++e)
        if (__builtin_mul_overflow(Wide{trips[e + 1]}, slope, &part) ||
            __builtin_add_overflow(slopes[e], part, &slopes[e]))
          return std::nullopt;
    }
    return base;
  }

  std::optional<Wide> extreme(const AffineForm& form, bool greatest, const AffineForm* plus = nullptr) const {
    std::array<Wide, max_nest_depth> of{};
    for (std::size_t d = 0; d < path_.size(); ++d) of[d] = Wide{form.of[d]} + (plus ? plus->of[d] : 0);
    return extreme(Wide{form.base} + (plus ? plus->base : 0), of, path_.size(), greatest);
  }

  /// The columns of a leaf as affine forms of the loops, and the range of bytes that it touches.
  struct Element {
    AffineForm logical, length, physical, id;
    bool by_position = false;  ///< physical offset and id are no such forms; lookups compute them from the position
    std::int64_t begin = 0, end = 0, longest = 0;
  };
  /// Where the element of the first turns lies once all levels count upwards in the file, and its length there; the
  /// least and the greatest length that the loops could make of it.
  struct Corner {
    Wide base, length, least_length, greatest_length;
  };

  /// Adds the leaf for the vector `node`, whose first element has the position `first`; returns why it cannot, or "".
  ///
  /// Example: for i < 10, for j < 4: offset 1000 - 100 i + 8 j, length 8. The leaf covers [100, 1032). The loop over i
  /// runs towards the file's begin, so its level is mirrored: turn 0 of the level is i = 9, at the base 100, and its
  /// stride is 100. The level of j has stride 8. A lookup of byte 1013 divides: 913 = 9 * 100 + 13, 13 = 1 * 8 + 5, so
  /// level turns 9 and 1, which is i = 0, j = 1, byte 5 of that element.
  std::string add(std::uint32_t node, std::uint64_t first) {
    std::array<Wide, max_nest_depth> trips{};
    if (const auto end = bound_trips(trips)) return *end;
    Element element;
    if (const auto end = bound_element(node, first, element)) return *end;
    Leaf leaf = leaf_of(node, first, element);
    std::vector<Level> levels;
    std::vector<bool> is_bound;  // the level moves the element, or a trip count depends on it
    Corner corner{element.logical.base, element.length.base, element.length.base, element.length.base};
    for (std::size_t d = 0; d < path_.size(); ++d) {
      if (forms_.is_constant() && trips[d] == 1) continue;
      const std::int64_t stride = element.logical.of[d], growth = element.length.of[d];
      const Wide turns = trips[d] - 1;
      if (stride == INT64_MIN || growth == INT64_MIN) return "has strides of 2^63";
      if (reaches_far(stride, turns) || reaches_far(growth, turns) || trips_reach_far(d, turns)) return too_far;
      Level level = level_of(d, trips[d], element);
      (growth < 0 ? corner.least_length : corner.greatest_length) += turns * growth;
      const bool is_idle = level.stride == 0 && level.length == 0 && !is_coupled(d);
      // The last turn overwrites all earlier ones, so the level can be left out.
      const bool is_last_only = is_idle && forms_.is_constant() && exceptions_ == exceptions_end_;
      if (level.is_mirrored || is_last_only) move_to_last_turn(leaf, level);
      if (is_last_only) continue;
      if (level.is_mirrored) {
        corner.base += turns * stride;
        corner.length += turns * growth;
        negate_steps(level);
      }
      levels.push_back(level);
      is_bound.push_back(!is_idle);
    }
    if (corner.base < INT64_MIN || corner.least_length < INT64_MIN || corner.greatest_length > INT64_MAX)
      return too_far;
    leaf.base = static_cast<std::int64_t>(corner.base);
    leaf.begin = std::max(leaf.begin, leaf.base);  // neither bound is exact where loops have no turns
    leaf.length = static_cast<std::uint64_t>(static_cast<std::int64_t>(corner.length));
    return settle(leaf, levels, is_bound, element.longest);
  }

  static constexpr const char* too_far = "has loops that reach too far beyond what they write";

  /// Sets the greatest trip count of each loop. Returns a value if the leaf ends here: why it cannot be indexed, or ""
  /// if it has no elements.
  std::optional<std::string> bound_trips(std::array<Wide, max_nest_depth>& trips) const {
    for (std::size_t d = 0; d < path_.size(); ++d) {
      const std::int64_t* found = numbers(path_[d]);
      std::array<Wide, max_nest_depth> of{};
      std::copy_n(found + 1, d, of.begin());
      const auto greatest = extreme(found[0], of, d, true);
      if (!greatest || *greatest > INT64_MAX) return "has a trip count above 2^63 - 1";
      if (*greatest <= 0) return "";
      trips[d] = *greatest;
    }
    return std::nullopt;
  }

  /// Sets `element`. Returns a value as bound_trips() does; "" if every length is 0.
  std::optional<std::string> bound_element(std::uint32_t node, std::uint64_t first, Element& element) {
    const auto logical = forms_.form(into_.columns_.logical, node, path_, first);
    const auto length = forms_.form(into_.columns_.length, node, path_, first);
    const auto physical = forms_.form(into_.columns_.physical, node, path_, first);
    const auto id = forms_.form(into_.columns_.id, node, path_, first);
    if (!logical || !length) return "has offsets or lengths that follow sums of varying lengths";
    const auto begin = extreme(*logical, false), end = extreme(*logical, true, &*length);
    const auto shortest = extreme(*length, false), longest = extreme(*length, true);
    if (!shortest || *shortest < 0) return "has a length below 0";
    if (!longest || *longest > INT64_MAX) return "has a length above 2^63 - 1";
    if (*longest == 0) return "";
    if (!begin || *begin < 0) return "has a logical offset below 0";
    if (!end || *end > INT64_MAX) return "ends after byte 2^63 - 1";
    element.logical = *logical;
    element.length = *length;
    element.by_position = !physical || !id;
    if (!element.by_position) {
      element.physical = *physical;
      element.id = *id;
    }
    element.begin = static_cast<std::int64_t>(*begin);
    element.end = static_cast<std::int64_t>(*end);
    element.longest = static_cast<std::int64_t>(*longest);
    return std::nullopt;
  }

  Leaf leaf_of(std::uint32_t node, std::uint64_t first, const Element& element) const {
    Leaf leaf;
    leaf.term = term_;
    leaf.node = node;
    leaf.exceptions = exceptions_;
    leaf.exceptions_end = exceptions_end_;
    leaf.is_constant = forms_.is_constant();
    leaf.by_position = element.by_position;
    leaf.begin = element.begin;
    leaf.end = element.end;
    leaf.position = first;
    leaf.physical = static_cast<std::uint64_t>(element.physical.base);
    leaf.id = static_cast<std::uint64_t>(element.id.base);
    return leaf;
  }

  Level level_of(std::size_t d, Wide trips, const Element& element) {
    Level level;
    level.is_mirrored = element.logical.of[d] < 0;
    const auto stride = static_cast<std::uint64_t>(element.logical.of[d]);
    level.stride = level.is_mirrored ? 0 - stride : stride;
    level.trips = static_cast<std::uint64_t>(trips);
    level.loop = path_[d];
    level.depth = static_cast<std::uint8_t>(d);
    level.length = static_cast<std::uint64_t>(element.length.of[d]);
    level.physical = static_cast<std::uint64_t>(element.physical.of[d]);
    level.id = static_cast<std::uint64_t>(element.id.of[d]);
    if (forms_.is_constant()) level.position = forms_.turn_count(path_[d]);
    return level;
  }

  /// Makes the last turn of `level` the one at which the leaf begins.
  static void move_to_last_turn(Leaf& leaf, const Level& level) {
    const std::uint64_t last = level.trips - 1;
    leaf.physical += last * level.physical;
    leaf.id += last * level.id;
    leaf.position += last * level.position;
  }

  static void negate_steps(Level& level) {
    level.length = 0 - level.length;
    level.physical = 0 - level.physical;
    level.id = 0 - level.id;
    level.position = 0 - level.position;
  }

  static bool reaches_far(std::int64_t slope, Wide turns) {
    return turns * slope > UINT64_MAX || turns * slope < -Wide{UINT64_MAX};
  }
  [[nodiscard]] bool trips_reach_far(std::size_t d, Wide turns) const {
    for (std::size_t e = d + 1; e < path_.size(); ++e)
      if (reaches_far(numbers(path_[e])[d + 1], turns)) return true;
    return false;
  }

  /// Sorts the levels by stride, the longest first, and stores for each how far the levels after it reach. With that a
  /// lookup knows how many turns of a level may hold a byte: one if reach <= stride, else up to reach / stride + 2.
  /// Refuses a leaf with more than `max_candidates` such turns in all.
  ///
  /// Example: strides 100 (10 trips) and 8 (4 trips), length 8. Level 100 has reach 32: 8 * 3 + 8. Level 8 has reach 8,
  /// the element itself. Both reaches are at most the stride, so every byte belongs to one turn: the leaf is plain.
  std::string settle(Leaf leaf, const std::vector<Level>& levels, const std::vector<bool>& is_bound, Wide longest) {
    leaf.first_level = static_cast<std::uint32_t>(into_.levels_.size());
    leaf.levels = static_cast<std::uint8_t>(levels.size());
    const auto bound = static_cast<std::uint8_t>(std::ranges::count(is_bound, true));
    leaf.is_solved = bound > 0;
    leaf.free = bound > 0 ? static_cast<std::uint8_t>(bound - 1) : 0;
    append_by_stride(levels, is_bound);

    Level* const first = into_.levels_.data() + leaf.first_level;
    Wide reach = longest;
    std::uint64_t newest = 0;  // elements after the first one, up to the newest of the levels so far
    leaf.is_plain = forms_.is_constant() && bound == leaf.levels;
    Wide candidates = 1;
    for (std::size_t k = leaf.levels; k-- > 0;) {
      Level& level = first[k];
      level.reach = saturated(reach);
      level.newest = newest;
      leaf.is_plain = leaf.is_plain && level.length == 0 && level.stride > 0 && reach <= level.stride;
      if (k < leaf.free) candidates *= max_turns_of_a_byte(level, reach);
      if (candidates > max_candidates)
        return fmt::format("writes over itself more than {} times for one byte", max_candidates);
      reach = std::min<Wide>(reach + Wide{level.stride} * (Wide{level.trips} - 1), UINT64_MAX);
      if (static_cast<std::int64_t>(level.position) > 0) newest += level.position * (level.trips - 1);
    }
    leaf.is_run = is_run(leaf);
    const Term& term = pattern_.terms[term_];
    leaf.newest = forms_.is_constant() ? leaf.position + newest : term.first + term.count - 1;
    into_.leaves_.push_back(leaf);
    return "";
  }

  /// Appends the levels to the index: bound ones by falling stride, then the others in the order of their loops.
  void append_by_stride(const std::vector<Level>& levels, const std::vector<bool>& is_bound) {
    std::vector<std::size_t> order(levels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return is_bound[a] != is_bound[b] ? is_bound[a] : is_bound[a] && levels[a].stride > levels[b].stride;
    });
    for (const std::size_t n : order) into_.levels_.push_back(levels[n]);
  }

  /// Returns how many turns of `level` may hold one byte, if what lies within a turn reaches `reach` bytes.
  static Wide max_turns_of_a_byte(const Level& level, Wide reach) {
    if (level.stride == 0) return level.trips;
    return reach > level.stride ? std::min<Wide>(reach / level.stride + 2, level.trips) : Wide{1};
  }

  /// Whether the elements of the innermost level lie one after the other, in the file and in the log.
  [[nodiscard]] bool is_run(const Leaf& leaf) const {
    if (!leaf.is_plain || leaf.levels == 0 || leaf.exceptions != leaf.exceptions_end || leaf.by_position) return false;
    const Level& last = into_.levels_[leaf.first_level + leaf.levels - 1U];
    return last.stride == leaf.length && last.physical == leaf.length && last.id == 0 && !last.is_mirrored;
  }

  /// Returns whether the trip count of a loop around the leaf depends on loop `d`, or that of loop `d` on others.
  [[nodiscard]] bool is_coupled(std::size_t d) const {
    for (std::size_t e = 0; e < d; ++e)
      if (numbers(path_[d])[e + 1] != 0) return true;
    for (std::size_t e = d + 1; e < path_.size(); ++e)
      if (numbers(path_[e])[d + 1] != 0) return true;
    return false;
  }

  LeafIndex& into_;
  const Pattern& pattern_;
  std::uint32_t term_;
  NestForms forms_;
  std::uint32_t exceptions_ = 0, exceptions_end_ = 0;
  std::vector<std::uint32_t> path_;
};

std::string LeafIndex::add(std::uint32_t term, const PatternIndex& index) {
  const std::size_t leaves = leaves_.size(), levels = levels_.size();
  std::string fault = LeafMaker(*this, term, index).make();
  if (!fault.empty()) {
    leaves_.resize(leaves);
    levels_.resize(levels);
  }
  return fault;
}

}  // namespace iosig
