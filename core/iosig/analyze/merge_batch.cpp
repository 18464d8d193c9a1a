#include "iosig/analyze/merge_batch.h"

#include <algorithm>

#include "iosig/analyze/nest_forms.h"
#include "iosig/model/access_columns.h"

namespace iosig {
namespace {

constexpr AccessColumns local_columns = {.logical = 0, .length = 1, .physical = 2, .id = -1};
constexpr std::array<int, 3> column_order = {local_columns.logical, local_columns.length, local_columns.physical};
constexpr std::uint64_t max_expanded_nest = 1 << 22;  ///< accesses of a nest that has to be expanded for its bounds

/// Writes a nest of a local pattern in merged columns.
class NestWriter {
 public:
  NestWriter(const PatternIndex& index, std::uint32_t term, std::int64_t id, std::vector<Node>& nodes,
             std::vector<std::int64_t>& numbers)
      : pattern_(index.pattern()),
        forms_(index, term, column_order),
        id_(id),
        nodes_(nodes),
        numbers_(numbers),
        first_node_(nodes.size()),
        first_number_(numbers.size()) {}

  /// Returns false and writes nothing if a column is not affine.
  bool write(std::uint64_t first) {
    if (write(forms_.root(), first) &&
        fault_of({nodes_.data() + first_node_, numbers_.data() + first_number_, merged_columns}, 0).empty())
      return true;
    nodes_.resize(first_node_);
    numbers_.resize(first_number_);
    return false;
  }

 private:
  bool write(std::uint32_t node, std::uint64_t position) {
    const std::size_t depth = path_.size(), me = nodes_.size();
    nodes_.push_back({pattern_.nodes[node].is_loop, 0, static_cast<std::uint32_t>(numbers_.size() - first_number_)});
    if (!pattern_.nodes[node].is_loop) {
      for (const int column : column_order) {
        const auto form = forms_.form(column, node, path_, position);
        if (!form) return false;
        numbers_.push_back(form->base);
        numbers_.insert(numbers_.end(), form->of.begin(), form->of.begin() + static_cast<std::ptrdiff_t>(depth));
      }
      numbers_.push_back(id_);
      numbers_.insert(numbers_.end(), depth, 0);
    } else {
      const auto trips = pattern_.numbers.begin() + pattern_.nodes[node].numbers;
      numbers_.insert(numbers_.end(), trips, trips + static_cast<std::ptrdiff_t>(depth) + 1);
      path_.push_back(node);
      for (std::uint32_t child = node + 1; child < pattern_.nodes[node].end; child = pattern_.nodes[child].end) {
        if (!write(child, position)) return false;
        if (forms_.is_constant()) position += forms_.count(child);
      }
      path_.pop_back();
    }
    nodes_[me].end = static_cast<std::uint32_t>(nodes_.size() - first_node_);
    return true;
  }

  const Pattern& pattern_;
  NestForms forms_;
  std::int64_t id_;
  std::vector<Node>& nodes_;
  std::vector<std::int64_t>& numbers_;
  std::size_t first_node_, first_number_;
  std::vector<std::uint32_t> path_;
};

}  // namespace

LocalBatches::LocalBatches(const LocalPattern& local)
    : local_(local), index_(std::make_unique<PatternIndex>(*local.pattern)) {}

Result<LocalBatches> LocalBatches::of(const LocalPattern& local) {
  const Pattern& pattern = *local.pattern;
  LocalBatches batches(local);
  if (pattern.columns != sequence_column && pattern.columns != sequence_column + 1)
    return fail(
        ErrorKind::bad_input,
        "{}: a pattern of {} column(s); expected 3 (logical offset, length, physical offset) or 4 (and sequence)",
        batches.name(), pattern.columns);
  constexpr std::array<Column, max_columns> expected = {Column::logical, Column::length, Column::physical,
                                                        Column::sequence};
  for (std::uint32_t column = 0; column < pattern.columns; ++column)
    if (pattern.kinds[column] != Column::any && pattern.kinds[column] != expected[column])
      return fail(ErrorKind::bad_input, "{}: column {} is {}; expected {}", batches.name(), column + 1,
                  name_of(pattern.kinds[column]), name_of(expected[column]));
  LeafIndex leaves(pattern, local_columns);
  std::uint32_t exception = 0;
  for (std::uint32_t term = 0; term < pattern.terms.size(); ++term) {
    auto added = pattern.terms[term].is_nest ? batches.add_nest(term, exception, leaves) : batches.add_literals(term);
    if (!added) return pass_on(std::move(added.error()));
  }
  return batches;
}

/// Adds the footprint of the batch that is added next.
void LocalBatches::add_footprint(Footprint footprint) {
  footprint.owner = static_cast<std::uint32_t>(batches_.size());
  footprint.group = local_.id;
  if (footprint.end > footprint.begin) footprints_.push_back(footprint);
}

Result<void> LocalBatches::add_nest(std::uint32_t term, std::uint32_t& exception, LeafIndex& leaves) {
  const Pattern& pattern = *local_.pattern;
  const Term& it = pattern.terms[term];
  Batch batch{.first = it.first, .count = it.count, .exception = exception, .term = term};
  if (auto done = set_times(batch); !done) return done;
  const std::size_t node = nodes_.size(), number = numbers_.size();
  if (NestWriter(*index_, term, local_.id, nodes_, numbers_).write(it.first)) {
    batch.node = static_cast<std::uint32_t>(node);
    batch.nodes = static_cast<std::uint32_t>(nodes_.size() - node);
    batch.number = static_cast<std::uint32_t>(number);
    batch.numbers = static_cast<std::uint32_t>(numbers_.size() - number);
  }
  const std::size_t known = leaves.leaves().size();
  if (const std::string fault = leaves.add(term, *index_); fault.empty()) {
    for (std::size_t leaf = known; leaf < leaves.leaves().size(); ++leaf)
      add_footprint(Footprint::of(leaves, leaves.leaves()[leaf]));
  } else if (it.count > max_expanded_nest) {
    return fail(ErrorKind::infeasible, "{}: term {} {}, and is too large to be expanded: {} accesses", name(), term + 1,
                fault, it.count);
  } else {
    const auto footprint = touched(it.first, it.count);
    if (!footprint) return pass_on(footprint.error());
    add_footprint(*footprint);
  }
  const auto& positions = pattern.exception_positions;
  for (; exception < positions.size() && positions[exception] < it.first + it.count; ++exception) {
    ++batch.exceptions;
    const auto footprint = touched(positions[exception], 1);
    if (!footprint) return pass_on(footprint.error());
    add_footprint(*footprint);
  }
  batches_.push_back(batch);
  return {};
}

/// Adds a block of literals. Joins it with a preceding block unless each block has a single sequence number and the two
/// numbers differ.
Result<void> LocalBatches::add_literals(std::uint32_t term) {
  const Term& it = local_.pattern->terms[term];
  Batch batch{.first = it.first, .count = it.count, .term = term, .is_literals = true};
  auto hull = touched(it.first, it.count);
  if (!hull) return pass_on(std::move(hull.error()));
  if (auto done = set_times(batch); !done) return done;
  const auto has_own_time = [&](const Batch& one) {
    return has_sequence() && one.low == one.high && batch.low != batches_.back().high;
  };
  if (!batches_.empty() && batches_.back().is_literals && !(has_own_time(batch) && has_own_time(batches_.back()))) {
    batch.first = batches_.back().first;
    batch.term = batches_.back().term;
    batch.low = batches_.back().low;
    batch.count += batches_.back().count;
    batches_.pop_back();
    if (!footprints_.empty() && footprints_.back().owner == batches_.size()) {
      const Footprint& before = footprints_.back();
      *hull =
          hull->end == 0 ? before : Footprint::of(std::min(hull->begin, before.begin), std::max(hull->end, before.end));
      footprints_.pop_back();
    }
  }
  add_footprint(*hull);
  batches_.push_back(batch);
  return {};
}

Result<void> LocalBatches::set_times(Batch& batch) const {
  batch.low = local_.opened;
  batch.high = local_.closed;
  if (!has_sequence()) return {};
  std::array<std::int64_t, max_columns> vector{};
  index_->element(batch.first, vector);
  batch.low = vector[sequence_column];
  index_->element(batch.first + batch.count - 1, vector);
  batch.high = vector[sequence_column];
  if (batch.low <= batch.high && (batches_.empty() || batches_.back().high <= batch.low)) return {};
  return fail(ErrorKind::bad_input, "{}: the sequence numbers fall at access {} or after it", name(), batch.first + 1);
}

void LocalBatches::access(std::uint64_t position, std::span<std::int64_t, merged_columns> out) const {
  std::array<std::int64_t, max_columns> vector{};
  index_->element(position, vector);
  std::copy_n(vector.begin(), merged_columns - 1, out.begin());
  out.back() = local_.id;
}

/// Returns the bytes that one access touches.
Result<Footprint> LocalBatches::touched(std::uint64_t position, std::span<const std::int64_t> vector) const {
  const std::int64_t begin = vector[0], length = vector[1];
  if (length < 0)
    return fail(ErrorKind::bad_input, "{}: access {} has length {}; expected 0 or more", name(), position + 1, length);
  if (length > 0 && begin < 0)
    return fail(ErrorKind::bad_input, "{}: access {} has logical offset {}; expected 0 or more", name(), position + 1,
                begin);
  if (length > 0 && begin > INT64_MAX - length)
    return fail(ErrorKind::bad_input, "{}: access {} ends after byte 2^63 - 1", name(), position + 1);
  return length > 0 ? Footprint::of(begin, begin + length) : Footprint{};
}

/// Returns the hull of the bytes that `count` accesses touch.
Result<Footprint> LocalBatches::touched(std::uint64_t first, std::uint64_t count) const {
  PatternCursor cursor(*index_, first);
  std::array<std::int64_t, max_columns> vector{};
  Footprint hull;
  for (std::uint64_t n = 0; n < count && cursor.next(vector); ++n) {
    auto one = touched(first + n, vector);
    if (!one) return one;
    if (one->end == one->begin) continue;
    hull.begin = hull.end == 0 ? one->begin : std::min(hull.begin, one->begin);
    hull.end = std::max(hull.end, one->end);
  }
  return hull;
}

}  // namespace iosig
