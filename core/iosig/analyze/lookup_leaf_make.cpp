// Prepares the leaves of a nest for lookup: columns become affine forms of the loops, and loops are sorted by stride.
#include <algorithm>

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

  std::string add(std::uint32_t node, std::uint64_t first) {
    const std::size_t depth = path_.size();
    std::array<Wide, max_nest_depth> trips{};
    for (std::size_t d = 0; d < depth; ++d) {
      const std::int64_t* found = numbers(path_[d]);
      std::array<Wide, max_nest_depth> of{};
      std::copy_n(found + 1, d, of.begin());
      const auto most = extreme(found[0], of, d, true);
      if (!most || *most > INT64_MAX) return "has a trip count above 2^63 - 1";
      if (*most <= 0) return "";
      trips[d] = *most;
    }
    const auto logical = forms_.form(into_.columns_.logical, node, path_, first);
    const auto length = forms_.form(into_.columns_.length, node, path_, first);
    auto physical = forms_.form(into_.columns_.physical, node, path_, first);
    auto id = forms_.form(into_.columns_.id, node, path_, first);
    if (!logical || !length) return "has offsets or lengths that follow sums of varying lengths";
    const auto least = extreme(*logical, false), end = extreme(*logical, true, &*length);
    const auto shortest = extreme(*length, false), longest = extreme(*length, true);
    if (!shortest || *shortest < 0) return "has a length below 0";
    if (!longest || *longest > INT64_MAX) return "has a length above 2^63 - 1";
    if (*longest == 0) return "";
    if (!least || *least < 0) return "has a logical offset below 0";
    if (!end || *end > INT64_MAX) return "ends after byte 2^63 - 1";

    Leaf leaf;
    leaf.term = term_;
    leaf.node = node;
    leaf.exceptions = exceptions_;
    leaf.exceptions_end = exceptions_end_;
    leaf.is_constant = forms_.is_constant();
    leaf.by_position = !physical || !id;
    if (leaf.by_position) physical = id = AffineForm{};
    leaf.begin = static_cast<std::int64_t>(*least);
    leaf.end = static_cast<std::int64_t>(*end);
    leaf.position = first;
    leaf.physical = static_cast<std::uint64_t>(physical->base);
    leaf.id = static_cast<std::uint64_t>(id->base);

    std::vector<Level> levels;
    std::vector<bool> is_bound;  // the level moves the element, or a trip count depends on it
    Wide base = logical->base, shift = length->base, shortest_box = length->base, longest_box = length->base;
    for (std::size_t d = 0; d < depth; ++d) {
      if (forms_.is_constant() && trips[d] == 1) continue;
      if (logical->of[d] == INT64_MIN || length->of[d] == INT64_MIN) return "has strides of 2^63";
      const Wide turns = trips[d] - 1;
      if (reaches_far(logical->of[d], turns) || reaches_far(length->of[d], turns) || trips_reach_far(d, turns))
        return "has loops that reach too far beyond what they write";
      Level level;
      level.is_mirrored = logical->of[d] < 0;
      const auto stride = static_cast<std::uint64_t>(logical->of[d]);
      level.stride = level.is_mirrored ? 0 - stride : stride;
      level.trips = static_cast<std::uint64_t>(trips[d]);
      level.loop = path_[d];
      level.depth = static_cast<std::uint8_t>(d);
      level.length = static_cast<std::uint64_t>(length->of[d]);
      level.physical = static_cast<std::uint64_t>(physical->of[d]);
      level.id = static_cast<std::uint64_t>(id->of[d]);
      if (forms_.is_constant()) level.position = forms_.turn_count(path_[d]);
      (length->of[d] < 0 ? shortest_box : longest_box) += turns * length->of[d];
      const bool is_idle = level.stride == 0 && level.length == 0 && !is_hung_on(d);
      const bool is_last_only = is_idle && forms_.is_constant() && exceptions_ == exceptions_end_;
      if (level.is_mirrored) {
        base += turns * logical->of[d];
        shift += turns * length->of[d];
      }
      if (level.is_mirrored || is_last_only) {
        const auto last = static_cast<std::uint64_t>(turns);
        leaf.physical += last * level.physical;
        leaf.id += last * level.id;
        leaf.position += last * level.position;
      }
      if (is_last_only) continue;  // the last turn overwrites all earlier ones
      if (level.is_mirrored) {
        level.length = 0 - level.length;
        level.physical = 0 - level.physical;
        level.id = 0 - level.id;
        level.position = 0 - level.position;
      }
      levels.push_back(level);
      is_bound.push_back(!is_idle);
    }
    if (base < INT64_MIN || shortest_box < INT64_MIN || longest_box > INT64_MAX)
      return "has loops that reach too far beyond what they write";
    leaf.base = static_cast<std::int64_t>(base);
    leaf.begin = std::max(leaf.begin, leaf.base);  // neither bound is exact where loops have no turns
    leaf.length = static_cast<std::uint64_t>(static_cast<std::int64_t>(shift));
    return settle(leaf, levels, is_bound, *longest);
  }

  static bool reaches_far(std::int64_t slope, Wide turns) {
    return turns * slope > UINT64_MAX || turns * slope < -Wide{UINT64_MAX};
  }
  [[nodiscard]] bool trips_reach_far(std::size_t d, Wide turns) const {
    for (std::size_t e = d + 1; e < path_.size(); ++e)
      if (reaches_far(numbers(path_[e])[d + 1], turns)) return true;
    return false;
  }

  /// Sorts the levels and decides how to search them.
  std::string settle(Leaf leaf, const std::vector<Level>& levels, const std::vector<bool>& is_bound, Wide longest) {
    const Term& term = pattern_.terms[term_];
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < levels.size(); ++n) order.push_back(n);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return is_bound[a] != is_bound[b] ? is_bound[a] : is_bound[a] && levels[a].stride > levels[b].stride;
    });
    leaf.first_level = static_cast<std::uint32_t>(into_.levels_.size());
    leaf.levels = static_cast<std::uint8_t>(levels.size());
    const auto bound = static_cast<std::uint8_t>(std::ranges::count(is_bound, true));
    leaf.is_solved = bound > 0;
    leaf.free = bound > 0 ? static_cast<std::uint8_t>(bound - 1) : 0;
    for (const std::size_t n : order) into_.levels_.push_back(levels[n]);

    Level* const first = into_.levels_.data() + leaf.first_level;
    Wide reach = longest;
    std::uint64_t newest = 0;
    leaf.is_plain = forms_.is_constant() && bound == leaf.levels;
    Wide candidates = 1;
    for (std::size_t k = leaf.levels; k-- > 0;) {
      Level& level = first[k];
      level.reach = saturated(reach);
      level.newest = newest;
      leaf.is_plain = leaf.is_plain && level.length == 0 && level.stride > 0 && reach <= level.stride;
      if (k < leaf.free) {
        const Wide most = level.stride == 0 ? Wide{level.trips} : reach / level.stride + 2;
        if (level.stride == 0 || reach > level.stride) candidates *= std::min<Wide>(most, level.trips);
        if (candidates > max_candidates)
          return fmt::format("writes over itself more than {} times for one byte", max_candidates);
      }
      reach = std::min<Wide>(reach + Wide{level.stride} * (Wide{level.trips} - 1), UINT64_MAX);
      if (static_cast<std::int64_t>(level.position) > 0) newest += level.position * (level.trips - 1);
    }
    if (leaf.is_plain && leaf.levels > 0 && leaf.exceptions == leaf.exceptions_end && !leaf.by_position) {
      const Level& last = first[leaf.levels - 1];
      leaf.is_run = last.stride == leaf.length && last.physical == leaf.length && last.id == 0 && !last.is_mirrored;
    }
    leaf.newest = forms_.is_constant() ? leaf.position + newest : term.first + term.count - 1;
    into_.leaves_.push_back(leaf);
    return "";
  }

  /// Returns whether the trip count of a loop around the leaf depends on loop `d`, or that of loop `d` on others.
  [[nodiscard]] bool is_hung_on(std::size_t d) const {
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
