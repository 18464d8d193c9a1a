#include "iosig/analyze/lookup_tree.h"

#include <algorithm>
#include <map>
#include <queue>

#include "iosig/analyze/sorted_search.h"

namespace iosig {
namespace {

constexpr std::size_t min_group = 8;        ///< leaves; smaller groups are searched one by one
constexpr std::uint8_t max_moduli = 4;      ///< nested strides that separate leaves
constexpr std::size_t tolerated_depth = 3;  ///< of overlapping intervals

/// Returns the maximum number of intervals, sorted by begin, that overlap at one point.
template <class Drafts>
std::size_t depth_of(const Drafts& drafts) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends;
  std::size_t depth = 0;
  for (const auto& draft : drafts) {
    while (!ends.empty() && ends.top() <= draft.begin) ends.pop();
    ends.push(draft.end);
    depth = std::max(depth, ends.size());
  }
  return depth;
}

}  // namespace

LeafTree::LeafTree(const LeafIndex& leaves) {
  std::vector<Draft> drafts;
  drafts.reserve(leaves.leaves().size());
  for (const LeafIndex::Leaf& leaf : leaves.leaves())
    drafts.push_back({leaf.begin, leaf.end, leaf.base, leaf.newest, &leaf,
                      static_cast<std::uint32_t>(&leaf - leaves.leaves().data()), 0, Kind::leaf});
  root_ = build(leaves, std::move(drafts), 0, 0);
  trees_.shrink_to_fit();
  begins_.shrink_to_fit();
  ends_.shrink_to_fit();
  newest_.shrink_to_fit();
  targets_.shrink_to_fit();
  below_.shrink_to_fit();
}

std::uint32_t LeafTree::build(const LeafIndex& leaves, std::vector<Draft> drafts, std::uint8_t coordinate,
                              std::uint64_t modulus) {
  std::ranges::sort(drafts, {}, [](const Draft& draft) { return std::pair(draft.begin, draft.target); });
  std::vector<Draft> entries;
  for (std::size_t first = 0, last = 0; first < drafts.size(); first = last) {  // clusters without a gap
    std::int64_t end = drafts[first].end;
    for (last = first + 1; last < drafts.size() && drafts[last].begin < end; ++last)
      end = std::max(end, drafts[last].end);
    const std::span<Draft> cluster = std::span(drafts).subspan(first, last - first);
    if (coordinate < max_moduli && cluster.size() >= min_group && depth_of(cluster) > tolerated_depth)
      group(leaves, cluster, coordinate, entries);
    else
      entries.insert(entries.end(), cluster.begin(), cluster.end());
  }
  return add_tree(std::move(entries), coordinate, modulus);
}

/// Appends the entries of `cluster` to `out`, as groups where residues separate them.
///
/// Example: 64 processes write records of 1 KiB in turns, so each leaf covers nearly the whole file with a stride of
/// 64 KiB, and a tree of their ranges has depth 64. Modulo 64 KiB the leaf of process n occupies [n KiB, n KiB + 1 KiB)
/// alone. They become one entry, a group: its target is a tree over these residues, with depth 1.
void LeafTree::group(const LeafIndex& leaves, std::span<Draft> cluster, std::uint8_t coordinate,
                     std::vector<Draft>& out) {
  std::map<std::uint64_t, std::vector<Draft>> by_stride;  // 0: those that a stride cannot reduce
  for (const Draft& draft : cluster) {
    const auto levels = leaves.levels_of(*draft.shape);
    const bool is_reducible = draft.level < levels.size() && levels[draft.level].stride > 0 &&
                              levels[draft.level].stride < INT64_MAX / 4 &&
                              levels[draft.level].reach < levels[draft.level].stride;
    by_stride[is_reducible ? levels[draft.level].stride : 0].push_back(draft);
  }
  for (const auto& [stride, members] : by_stride) {
    const bool can_group = stride != 0 && members.size() >= min_group;
    const auto whole = can_group ? grouped(leaves, members, coordinate, stride) : std::nullopt;
    if (whole)
      out.push_back(*whole);
    else
      out.insert(out.end(), members.begin(), members.end());
  }
}

/// Returns one entry for `members`, whose present levels all have the stride `modulus`, or nothing if residues do not
/// separate them.
std::optional<LeafTree::Draft> LeafTree::grouped(const LeafIndex& leaves, const std::vector<Draft>& members,
                                                 std::uint8_t coordinate, std::uint64_t modulus) {
  std::map<std::vector<std::uint64_t>, std::vector<Draft>> by_residue;  // and by the shape of the levels within
  for (const Draft& draft : members) by_residue[residue_and_shape(leaves, draft, modulus)].push_back(draft);
  std::vector<Draft> inner;
  bool has_more_levels = false;
  Draft whole{INT64_MAX, 0, 0, 0, nullptr, 0, 0, Kind::group};
  for (auto& [key, same] : by_residue) {
    Draft entry = same.front();
    for (const Draft& draft : same) {
      entry.newest = std::max(entry.newest, draft.newest);
      whole.begin = std::min(whole.begin, draft.begin);
      whole.end = std::max(whole.end, draft.end);
    }
    whole.newest = std::max(whole.newest, entry.newest);
    if (same.size() > 1) {
      entry.target = add_tree(std::move(same), coordinate, 0);
      entry.kind = Kind::extents;
    }
    ++entry.level;
    has_more_levels |= leaves.levels_of(*entry.shape).size() > entry.level;
    append_arc(inner, entry, static_cast<std::int64_t>(key[0]), static_cast<std::int64_t>(key[1]),
               static_cast<std::int64_t>(modulus));
  }
  std::ranges::sort(inner, {}, &Draft::begin);
  if (!has_more_levels && depth_of(inner) > depth_of(members) / 2) return std::nullopt;
  whole.target = build(leaves, std::move(inner), static_cast<std::uint8_t>(coordinate + 1), modulus);
  whole.shape = members.front().shape;
  whole.level = static_cast<std::uint8_t>(leaves.levels_of(*whole.shape).size());
  return whole;
}

/// Returns what members of one tree must share: the residue of the origin, the reach of the present level, and strides
/// and trips of the levels within.
std::vector<std::uint64_t> LeafTree::residue_and_shape(const LeafIndex& leaves, const Draft& draft,
                                                       std::uint64_t modulus) {
  const auto levels = leaves.levels_of(*draft.shape).subspan(draft.level);
  const auto period = static_cast<std::int64_t>(modulus);
  const std::int64_t residue = (draft.origin % period + period) % period;
  std::vector<std::uint64_t> key{static_cast<std::uint64_t>(residue), levels[0].reach};
  for (const LeafIndex::Level& level : levels.subspan(1)) {
    key.push_back(level.stride);
    key.push_back(level.trips);
  }
  return key;
}

/// Appends `entry` for the residues [residue, residue + reach): in two parts if they pass the modulus, because the
/// element then begins in one turn and ends in the next.
void LeafTree::append_arc(std::vector<Draft>& inner, Draft entry, std::int64_t residue, std::int64_t reach,
                          std::int64_t modulus) {
  entry.origin = entry.begin = residue;
  entry.end = std::min(residue + reach, modulus);
  inner.push_back(entry);
  if (residue + reach <= modulus) return;
  entry.origin = residue - modulus;
  entry.begin = 0;
  entry.end = residue + reach - modulus;
  inner.push_back(entry);
}

std::uint32_t LeafTree::add_tree(std::vector<Draft> drafts, std::uint8_t coordinate, std::uint64_t modulus) {
  std::ranges::sort(drafts, {}, [](const Draft& draft) { return std::pair(draft.begin, draft.target); });
  Tree tree;
  tree.first = static_cast<std::uint32_t>(begins_.size());
  tree.count = static_cast<std::uint32_t>(drafts.size());
  tree.modulus = modulus;
  tree.coordinate = coordinate;
  tree.is_apart = depth_of(drafts) <= 1;
  for (const Draft& draft : drafts) {
    begins_.push_back(draft.begin);
    ends_.push_back(draft.end);
    newest_.push_back(draft.newest);
    targets_.push_back({draft.target, draft.kind});
    below_.emplace_back();
  }
  if (tree.is_apart && tree.count > 1) {
    const std::int64_t* const begins = begins_.data() + tree.first;
    tree.entries_per_byte =
        static_cast<double>(tree.count - 1) / static_cast<double>(begins[tree.count - 1] - begins[0]);
    for (std::uint32_t n = 0; n < tree.count && tree.entries_per_byte > 0; ++n) {
      const std::size_t up_to = guessed(tree, begins[n] - begins[0]);
      if (up_to > n + 2 || up_to + 1 < n) tree.entries_per_byte = 0;  // not at even distances
    }
  }
  if (!tree.is_apart) summarize(tree.first, tree.first + tree.count);
  trees_.push_back(tree);
  return static_cast<std::uint32_t>(trees_.size() - 1);
}

LeafTree::Summary LeafTree::summarize(std::uint32_t first, std::uint32_t last) {
  if (first == last) return {INT64_MIN, 0};
  const std::uint32_t middle = first + (last - first) / 2;
  const Summary left = summarize(first, middle), right = summarize(middle + 1, last);
  below_[middle] = {std::max({left.end, right.end, ends_[middle]}),
                    std::max({left.newest, right.newest, newest_[middle]})};
  return below_[middle];
}

/// The state of one search through the trees.
struct LeafTree::Query {
  const LeafTree& trees;
  const LeafIndex& leaves;
  ByteSearch& search;
  std::array<std::int64_t, max_moduli + 1> coordinates;

  void visit(const Tree& tree) {
    if (tree.count == 0) return;
    const std::int64_t at = coordinates[tree.coordinate];
    if (tree.modulus > 0)  // the next turn
      search.limit(tree.modulus - static_cast<std::uint64_t>(at) +
                   static_cast<std::uint64_t>(trees.begins_[tree.first]));
    if (tree.is_apart) {
      const std::int64_t* const begins = trees.begins_.data() + tree.first;
      const std::size_t up_to = tree.entries_per_byte > 0 ? guess(tree, at) : count_up_to(begins, tree.count, at);
      if (up_to < tree.count) search.limit(static_cast<std::uint64_t>(begins[up_to] - at));
      if (up_to > 0) enter(tree.first + static_cast<std::uint32_t>(up_to) - 1, at);
      return;
    }
    stab(tree.first, tree.first + tree.count, at);
    begin_after(tree.first, tree.first + tree.count, at);
  }

  /// As count_up_to(), for entries at even distances.
  [[nodiscard]] std::size_t guess(const Tree& tree, std::int64_t at) const {
    const std::int64_t* const begins = trees.begins_.data() + tree.first;
    std::size_t up_to = at < begins[0] ? 0 : std::min<std::size_t>(tree.count, guessed(tree, at - begins[0]));
    while (up_to < tree.count && begins[up_to] <= at) ++up_to;
    while (up_to > 0 && begins[up_to - 1] > at) --up_to;
    return up_to;
  }

  void enter(std::uint32_t entry, std::int64_t at) {
    if (trees.ends_[entry] <= at || trees.newest_[entry] < search.after) return;
    const Target target = trees.targets_[entry];
    if (target.kind == Kind::leaf) return leaves.search(leaves.leaves()[target.index], search);
    const Tree& tree = trees.trees_[target.index];
    if (target.kind == Kind::group)
      coordinates[tree.coordinate] = static_cast<std::int64_t>(static_cast<std::uint64_t>(at) % tree.modulus);
    visit(tree);
  }

  void stab(std::uint32_t first, std::uint32_t last, std::int64_t at) {
    while (first < last) {
      const std::uint32_t middle = first + (last - first) / 2;
      const Summary& below = trees.below_[middle];
      if (below.end <= at || below.newest < search.after) return;
      if (trees.begins_[middle] > at) {
        last = middle;
        continue;
      }
      stab(middle + 1, last, at);
      enter(middle, at);
      last = middle;
    }
  }

  /// Limits the search to the begin of the first entry that may be newer than the element found.
  bool begin_after(std::uint32_t first, std::uint32_t last, std::int64_t at) {
    if (first >= last) return false;
    const std::uint32_t middle = first + (last - first) / 2;
    if (trees.below_[middle].newest < search.after) return false;
    if (trees.begins_[middle] <= at) return begin_after(middle + 1, last, at);
    if (begin_after(first, middle, at)) return true;
    if (trees.newest_[middle] < search.after) return begin_after(middle + 1, last, at);
    search.limit(static_cast<std::uint64_t>(trees.begins_[middle] - at));
    return true;
  }
};

void LeafTree::search(const LeafIndex& leaves, ByteSearch& search) const {
  if (trees_.empty()) return;
  Query query{*this, leaves, search, {}};
  query.coordinates[0] = search.offset;
  query.visit(trees_[root_]);
}

std::size_t LeafTree::groups() const {
  return static_cast<std::size_t>(std::ranges::count_if(trees_, [](const Tree& tree) { return tree.modulus > 0; }));
}

std::size_t LeafTree::memory_bytes() const {
  return trees_.capacity() * sizeof(Tree) + (begins_.capacity() + ends_.capacity()) * sizeof(std::int64_t) +
         newest_.capacity() * sizeof(std::uint64_t) + targets_.capacity() * sizeof(Target) +
         below_.capacity() * sizeof(Summary);
}

}  // namespace iosig
