#include "iosig/analyze/lookup_leaf.h"

#include <algorithm>

namespace iosig {
namespace {

using Wide = __int128;

Wide floor_of(Wide dividend, Wide divisor) {                           // divisor > 0
  if (dividend >= 0 && dividend <= INT64_MAX && divisor <= INT64_MAX)  // the common case, and many times as fast
    return static_cast<std::uint64_t>(dividend) / static_cast<std::uint64_t>(divisor);
  const Wide quotient = dividend / divisor;
  return quotient - (dividend % divisor < 0 ? 1 : 0);
}

struct Interval {
  Wide low, high;  ///< inclusive
  [[nodiscard]] bool is_empty() const { return low > high; }
  /// Keeps each i with slope * i > bound.
  void keep_above(Wide slope, Wide bound) {
    if (slope > 0)
      low = std::max(low, floor_of(bound, slope) + 1);
    else if (slope < 0)
      high = std::min(high, floor_of(-bound - 1, -slope));
    else if (bound >= 0)
      high = low - 1;
  }
};

}  // namespace

/// The state that both searches through one leaf share: the current indices, level by level.
class LeafSearch {
 public:
  LeafSearch(const LeafIndex& index, const LeafIndex::Leaf& leaf)
      : index_(index), leaf_(leaf), levels_(index.levels_of(leaf)) {
    std::fill_n(at_.begin(), levels_.size(), 0);
  }

  void find(ByteSearch& search) {
    search_ = &search;
    descend(0, static_cast<std::uint64_t>(search.offset) - static_cast<std::uint64_t>(leaf_.base), leaf_.length,
            leaf_.position);
  }

  std::optional<std::int64_t> last_end(std::int64_t least, std::int64_t& budget) {
    end_ = least;
    budget_ = &budget;
    end_of(0, 0, leaf_.length);
    if (budget < 0) return std::nullopt;
    return static_cast<std::int64_t>(end_);
  }

 private:
  using Level = LeafIndex::Level;

  /// Tries the indices of level `k`. `left`: bytes from the element's least offset to the byte; `length` and `position`
  /// include the indices known so far.
  void descend(std::size_t k, std::uint64_t left, std::uint64_t length, std::uint64_t position) {
    if (k == leaf_.free) return solve(left, length, position);
    const Level& level = levels_[k];
    std::uint64_t low = 0, high = level.trips - 1;
    if (level.stride > 0) {
      const std::uint64_t quotient = left / level.stride;
      if (quotient < high) search_->limit(level.stride - left % level.stride);
      high = std::min(high, quotient);
      if (left >= level.reach) low = (left - level.reach) / level.stride + 1;
      if (low > high) return;
    }
    for (std::uint64_t n = 0; n <= high - low; ++n) {  // newest first
      const std::uint64_t index = level.is_mirrored ? low + n : high - n;
      const std::uint64_t there = position + level.position * index;
      if (leaf_.is_constant && there + level.newest < search_->after) return;
      at_[k] = index;
      descend(k + 1, left - level.stride * index, length + level.length * index, there);
    }
  }

  /// Finds the newest element among those of the levels from `free` on, given the indices of the levels before.
  void solve(std::uint64_t left, std::uint64_t length, std::uint64_t position) {
    left_ = left;
    length_ = length;
    position_ = position;
    if (!leaf_.is_solved) {
      if (left < length) (void)newest_of({0, 0});
      return;
    }
    const Level& level = levels_[leaf_.free];
    const Interval turns = turning();
    if (turns.is_empty()) return;
    Interval holding = turns;
    const Wide stride = level.stride;
    if (level.stride > 0) holding.high = std::min<Wide>(holding.high, left / level.stride);
    holding.keep_above(stride + static_cast<std::int64_t>(level.length),
                       Wide{left} - static_cast<std::int64_t>(length));
    const bool is_found = !holding.is_empty() && newest_of(holding);
    if (level.stride == 0) return;
    const bool is_all_there = leaf_.exceptions == leaf_.exceptions_end;
    if (is_found && level.is_mirrored && is_all_there) return;  // elements that begin after it are older
    const Wide next = std::max<Wide>(turns.low, left / level.stride + 1);
    if (next <= turns.high) limit(next * stride - left);
  }

  void limit(Wide distance) {
    if (distance < INT64_MAX) search_->limit(static_cast<std::uint64_t>(distance));
  }

  /// Returns the indices of level `free` at which every loop reaches its current index.
  [[nodiscard]] Interval turning() const {
    const Level& solved = levels_[leaf_.free];
    Interval turns{0, Wide{solved.trips} - 1};
    if (leaf_.is_constant) return turns;
    for (const Level& level : levels_) {
      const std::int64_t* numbers = index_.pattern_->numbers.data() + index_.pattern_->nodes[level.loop].numbers;
      Wide trips = numbers[0];
      for (const Level& other : levels_)
        if (other.depth < level.depth && &other != &solved) trips += Wide{numbers[other.depth + 1]} * real(other);
      if (&level == &solved) {  // its index is below `trips`
        narrow(turns, -1, -trips);
      } else {  // trips + slope * index must be above the index of `level`
        const Wide slope = solved.depth < level.depth ? numbers[solved.depth + 1] : 0;
        narrow(turns, slope, Wide{real(level)} - trips);
      }
    }
    return turns;
  }

  /// Keeps the indices of level `free` with slope * real index > bound.
  void narrow(Interval& turns, Wide slope, Wide bound) const {
    const Level& solved = levels_[leaf_.free];
    if (solved.is_mirrored)
      turns.keep_above(-slope, bound - slope * (Wide{solved.trips} - 1));
    else
      turns.keep_above(slope, bound);
  }

  /// Returns the index as the nest counts it.
  [[nodiscard]] std::int64_t real(const Level& level) const {
    const std::uint64_t index = at_[static_cast<std::size_t>(&level - levels_.data())];
    return static_cast<std::int64_t>(level.is_mirrored ? level.trips - 1 - index : index);
  }

  /// Searches back from the newest element to one that is not an exception. Returns false if there is none.
  bool newest_of(const Interval& holding) {
    std::array<Interval, max_nest_depth> ranges;
    std::array<std::uint8_t, max_nest_depth> order;  // levels from `free` on, the innermost loop last
    std::size_t count = 0;
    for (std::size_t k = leaf_.free; k < levels_.size(); ++k) {
      ranges[k] = leaf_.is_solved && k == leaf_.free ? holding : Interval{0, Wide{levels_[k].trips} - 1};
      at_[k] = newest(k, ranges[k]);
      order[count++] = static_cast<std::uint8_t>(k);
    }
    if (leaf_.exceptions != leaf_.exceptions_end)
      std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                [&](std::uint8_t a, std::uint8_t b) { return levels_[a].depth < levels_[b].depth; });
    for (;;) {
      const std::uint64_t position = position_here();
      if (position < search_->after) return true;
      if (!index_.is_exception(leaf_, position)) {
        take(position);
        return true;
      }
      std::size_t n = count;
      for (;;) {
        if (n == 0) return false;
        const std::size_t k = order[--n];
        if (at_[k] != (levels_[k].is_mirrored ? ranges[k].high : ranges[k].low)) {
          at_[k] += levels_[k].is_mirrored ? 1 : ~std::uint64_t{0};
          break;
        }
        at_[k] = newest(k, ranges[k]);
      }
    }
  }

  [[nodiscard]] std::uint64_t newest(std::size_t k, const Interval& range) const {
    return static_cast<std::uint64_t>(levels_[k].is_mirrored ? range.low : range.high);
  }

  [[nodiscard]] std::uint64_t position_here() const {
    if (leaf_.is_constant) {
      std::uint64_t position = position_;
      for (std::size_t k = leaf_.free; k < levels_.size(); ++k) position += levels_[k].position * at_[k];
      return position;
    }
    const Pattern& pattern = *index_.pattern_;
    std::array<std::int64_t, max_nest_depth> indices{};
    std::array<std::uint32_t, max_nest_depth + 1> path{};
    for (const Level& level : levels_) {
      indices[level.depth] = real(level);
      path[level.depth] = level.loop;
    }
    path[levels_.size()] = leaf_.node;
    std::uint64_t position = pattern.terms[leaf_.term].first;
    for (std::size_t d = 0; d < levels_.size(); ++d) {
      position += count_before(pattern, path[d], {indices.data(), d}, indices[d]);
      for (std::uint32_t node = path[d] + 1; node != path[d + 1]; node = pattern.nodes[node].end)
        position += count_of(view_of(pattern), node, {indices.data(), d + 1});
    }
    return position;
  }

  void take(std::uint64_t position) {
    std::uint64_t into = left_, length = length_;  // from the begin of the element to the byte
    for (std::size_t k = leaf_.free; k < levels_.size(); ++k) {
      into -= levels_[k].stride * at_[k];
      length += levels_[k].length * at_[k];
    }
    Holder holder;
    holder.position = position;
    holder.begin = search_->offset - static_cast<std::int64_t>(into);
    holder.end = holder.begin + static_cast<std::int64_t>(length);
    holder.by_position = leaf_.by_position;
    holder.physical = leaf_.physical;
    holder.id = leaf_.id;
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      holder.physical += levels_[k].physical * at_[k];
      holder.id += levels_[k].id * at_[k];
    }
    search_->take_if_newer(holder);
  }

  // ---- the last end: latest ends first; branches that cannot end later are pruned ----

  void end_of(std::size_t k, std::uint64_t offset, std::uint64_t length) {
    if (--*budget_ < 0) return;
    Wide more = 0, longer = 0;
    for (std::size_t j = k; j < levels_.size(); ++j) {
      const Wide turns = Wide{levels_[j].trips} - 1;
      const Wide grows = static_cast<std::int64_t>(levels_[j].length);
      more += std::max<Wide>(0, Wide{levels_[j].stride} + grows) * turns;
      longer += std::max<Wide>(0, grows) * turns;
    }
    const Wide end = Wide{leaf_.base} + offset + static_cast<std::int64_t>(length);
    if (end + more <= end_ || static_cast<std::int64_t>(length) + longer <= 0) return;
    if (k == levels_.size()) {
      left_ = offset;
      position_ = leaf_.position;
      if (is_there()) end_ = end;
      return;
    }
    const Level& level = levels_[k];
    const bool is_solved = k == leaf_.free && leaf_.is_solved;
    const Interval turns = is_solved ? turning() : Interval{0, Wide{level.trips} - 1};
    const Wide slope = Wide{level.stride} + static_cast<std::int64_t>(level.length);
    const bool is_upward = slope < 0 || (slope == 0 && static_cast<std::int64_t>(level.length) < 0);
    for (Wide n = 0; n <= turns.high - turns.low && *budget_ >= 0; ++n) {
      const auto index = static_cast<std::uint64_t>(is_upward ? turns.low + n : turns.high - n);
      if (end + slope * static_cast<Wide>(index) + more - std::max<Wide>(0, slope) * (Wide{level.trips} - 1) <= end_)
        return;
      at_[k] = index;
      end_of(k + 1, offset + level.stride * index, length + level.length * index);
    }
  }

  [[nodiscard]] bool is_there() const {
    std::uint64_t position = leaf_.position;
    if (leaf_.exceptions == leaf_.exceptions_end) return true;
    if (!leaf_.is_constant) {
      position = position_here();
    } else {
      for (std::size_t k = 0; k < levels_.size(); ++k) position += levels_[k].position * at_[k];
    }
    return !index_.is_exception(leaf_, position);
  }

  const LeafIndex& index_;
  const LeafIndex::Leaf& leaf_;
  std::span<const Level> levels_;
  ByteSearch* search_ = nullptr;
  std::array<std::uint64_t, max_nest_depth> at_;  ///< by level
  std::uint64_t left_ = 0, length_ = 0, position_ = 0;
  Wide end_ = 0;
  std::int64_t* budget_ = nullptr;
};

bool LeafIndex::is_exception(const Leaf& leaf, std::uint64_t position) const {
  const auto begin = pattern_->exception_positions.begin();
  return std::binary_search(begin + leaf.exceptions, begin + leaf.exceptions_end, position);
}

void LeafIndex::search(const Leaf& leaf, ByteSearch& search) const {
  if (search.offset < leaf.begin) return search.limit(static_cast<std::uint64_t>(leaf.begin - search.offset));
  if (search.offset >= leaf.end) return;
  if (!leaf.is_plain) return LeafSearch(*this, leaf).find(search);
  std::uint64_t left = static_cast<std::uint64_t>(search.offset) - static_cast<std::uint64_t>(leaf.base);
  Holder holder{.position = leaf.position, .physical = leaf.physical, .id = leaf.id, .by_position = leaf.by_position};
  std::uint64_t length = leaf.length;
  const Level* level = levels_.data() + leaf.first_level;
  for (const Level* last = level + leaf.levels; level != last; ++level) {
    const std::uint64_t index = left / level->stride;
    left -= index * level->stride;
    if (index >= level->trips) return;  // after the last turn; the loops around it have limited the search
    if (index + 1 < level->trips) {
      if (leaf.is_run && level + 1 == last) {
        holder.next = level->stride - left;
        length *= level->trips - index;
      } else {
        search.limit(level->stride - left);
      }
    }
    holder.position += level->position * index;
    holder.physical += level->physical * index;
    holder.id += level->id * index;
  }
  if (left >= leaf.length) return;
  if (leaf.exceptions != leaf.exceptions_end && is_exception(leaf, holder.position)) return;
  holder.begin = search.offset - static_cast<std::int64_t>(left);
  holder.end = holder.begin + static_cast<std::int64_t>(length);
  search.take_if_newer(holder);
}

std::optional<std::int64_t> LeafIndex::last_end(const Leaf& leaf, std::int64_t least, std::int64_t& budget) const {
  return leaf.end <= least ? least : LeafSearch(*this, leaf).last_end(least, budget);
}

}  // namespace iosig
