#include "iosig/model/pattern_cursor.h"

#include <algorithm>

#include "iosig/model/literals.h"

namespace iosig {
namespace {

/// Adds to `stored` the running sums that the columns of `pattern` follow. `previous`: the vector before it.
void add_followed(const Pattern& pattern, std::span<const std::int64_t> previous, std::int64_t* stored) {
  for (std::uint32_t column = 0; column < pattern.columns; ++column)
    if (const std::int8_t source = pattern.follows[column]; source >= 0)
      stored[column] = static_cast<std::int64_t>(
          static_cast<std::uint64_t>(stored[column]) + static_cast<std::uint64_t>(previous[column]) +
          static_cast<std::uint64_t>(previous[static_cast<std::uint8_t>(source)]));
}

}  // namespace

PatternCursor::PatternCursor(const Pattern& pattern) : pattern_(&pattern) {
  block_.reserve(block_vectors * pattern.columns);
  if (!pattern.terms.empty()) open_term();
}

PatternCursor::PatternCursor(const PatternIndex& index, std::uint64_t position)
    : pattern_(&index.pattern()), position_(position) {
  const Pattern& pattern = *pattern_;
  block_.reserve(block_vectors * pattern.columns);
  term_ = pattern.terms.size();
  if (position == pattern.count()) return;
  term_ = static_cast<std::size_t>(std::ranges::upper_bound(pattern.terms, position, {}, &Term::first) -
                                   pattern.terms.begin()) -
          1;
  exception_ = static_cast<std::size_t>(std::ranges::lower_bound(pattern.exception_positions, position) -
                                        pattern.exception_positions.begin());
  if (position > 0) index.element(position - 1, previous_);
  open_term();
}

/// Prepares the element at position_, which is in term_.
void PatternCursor::open_term() {
  const Term& term = pattern_->terms[term_];
  if (term.is_nest)
    walk_.seek(view_of(*pattern_), static_cast<std::uint32_t>(term.at), position_ - term.first);
  else
    (void)read_block(std::span(pattern_->literals).subspan(term.at), pattern_->columns, block_);
}

bool PatternCursor::next(std::span<std::int64_t> out) {
  const Pattern& pattern = *pattern_;
  if (term_ == pattern.terms.size()) return false;
  const Term& term = pattern.terms[term_];
  const std::uint32_t columns = pattern.columns;
  const bool is_exception =
      exception_ < pattern.exception_positions.size() && pattern.exception_positions[exception_] == position_;
  const std::int64_t* stored = nullptr;
  if (is_exception)
    stored = &pattern.exception_values[exception_++ * columns];
  else if (!term.is_nest)
    stored = &block_[(position_ - term.first) * columns];
  if (stored)
    std::copy_n(stored, columns, out.begin());
  else
    walk_.values(out.data());
  add_followed(pattern, previous_, out.data());
  std::copy_n(out.begin(), columns, previous_.begin());
  ++position_;
  if (position_ - term.first == term.count) {
    if (++term_ < pattern.terms.size()) open_term();
  } else if (term.is_nest) {
    walk_.advance();
  }
  return true;
}

Result<std::vector<std::int64_t>> expanded(const Pattern& pattern, std::uint64_t limit) {
  if (pattern.count() > limit)
    return fail(ErrorKind::bad_input, "it stands for {} vectors; at most {} are expanded here", pattern.count(), limit);
  std::vector<std::int64_t> vectors(pattern.count() * pattern.columns);
  PatternCursor cursor(pattern);
  for (std::size_t at = 0; at < vectors.size(); at += pattern.columns)
    cursor.next(std::span(vectors).subspan(at, pattern.columns));
  return vectors;
}

std::vector<std::int64_t> predicted(const Pattern& pattern, std::size_t count) {
  const auto nest = std::ranges::find_if(pattern.terms.rbegin(), pattern.terms.rend(), &Term::is_nest);
  if (nest == pattern.terms.rend()) return {};
  const auto root = static_cast<std::uint32_t>(nest->at);
  const NestView view = view_of(pattern);
  const std::int64_t trips = pattern.numbers[pattern.nodes[root].numbers];
  // The maximum number of further valid turns. Each gives at least one vector, or the prediction ends.
  const std::uint64_t after = pattern.count() - nest->first - nest->count;
  std::int64_t more = 0;
  for (std::int64_t step = INT64_MAX / 2; step > 0; step /= 2)
    if (more <= INT64_MAX - trips - step && fault_of(view, root, trips + more + step).empty()) more += step;
  NestWalk walk;
  walk.start(view, root, trips, trips + more);
  const PatternIndex index(pattern);
  std::array<std::int64_t, max_columns> vector{}, stored{}, previous{};
  for (std::uint64_t n = 0; n < after; ++n, walk.advance()) {
    if (walk.at_end()) return {};
    index.stored_element(nest->first + nest->count + n, stored);
    walk.values(vector.data());
    if (!std::equal(vector.begin(), vector.begin() + pattern.columns, stored.begin())) return {};
  }
  index.element(pattern.count() - 1, previous);
  std::vector<std::int64_t> next;
  for (; count > 0 && !walk.at_end(); --count, walk.advance()) {
    walk.values(vector.data());
    add_followed(pattern, previous, vector.data());
    previous = vector;
    next.insert(next.end(), vector.begin(), vector.begin() + pattern.columns);
  }
  return next;
}

}  // namespace iosig
