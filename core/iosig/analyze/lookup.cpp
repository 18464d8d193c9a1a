#include "iosig/analyze/lookup.h"

#include <algorithm>

#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_unindexed = 1 << 22;  ///< elements of nests that cannot be indexed
constexpr std::uint64_t max_steps = 1 << 20;      ///< to find the last byte

std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

bool goes_on(const Piece& piece, const Piece& next) {
  return piece.is_hole == next.is_hole &&
         (piece.is_hole || (piece.id == next.id && sum(piece.physical, piece.length) == next.physical));
}

}  // namespace

PatternLookup::PatternLookup(const Pattern& pattern, const AccessColumns& columns)
    : pattern_(&pattern), columns_(columns), index_(pattern), leaves_(pattern, columns) {}

Result<PatternLookup> PatternLookup::of(const Pattern& pattern, const AccessColumns& columns) {
  const int last = static_cast<int>(pattern.columns) - 1;
  for (const int column : {columns.logical, columns.length, columns.physical, std::max(columns.id, 0)})
    if (column < 0 || column > last || columns.id < -1)
      return fail(
          ErrorKind::bad_input,
          "a lookup in a pattern of {} column(s); expected 3 (logical offset, length, physical offset) or 4 (and id)",
          pattern.columns);
  PatternLookup lookup(pattern, columns);
  if (auto made = lookup.make(); !made) return pass_on(std::move(made.error()));
  return lookup;
}

Result<void> PatternLookup::make() {
  const Pattern& pattern = *pattern_;
  std::vector<Written> elements;
  std::uint64_t expanded = 0;
  std::size_t exception = 0;
  for (std::uint32_t n = 0; n < pattern.terms.size(); ++n) {
    const Term& term = pattern.terms[n];
    std::string fault = term.is_nest ? leaves_.add(n, index_) : "literals";
    if (term.is_nest && !fault.empty() && (expanded += std::min(term.count, max_unindexed + 1)) > max_unindexed)
      return fail(ErrorKind::infeasible, "term {} {}, and is too large to be expanded: {} elements", n + 1, fault,
                  term.count);
    if (!fault.empty()) {
      if (auto done = expand(n, elements); !done) return done;
      continue;
    }
    auto& positions = pattern.exception_positions;
    while (exception < positions.size() && positions[exception] < term.first) ++exception;
    for (; exception < positions.size() && positions[exception] - term.first < term.count; ++exception) {
      std::array<std::int64_t, max_columns> vector{};
      index_.element(positions[exception], vector);
      const auto element = written(positions[exception], vector.data());
      if (!element) return pass_on(element.error());
      elements.push_back(*element);
    }
  }
  segments_ = Segments(std::move(elements));
  leaves_.shrink();
  tree_ = LeafTree(leaves_);
  size_ = segments_.end();
  auto budget = static_cast<std::int64_t>(max_steps + 64 * leaves_.leaves().size());
  for (const LeafIndex::Leaf& leaf : leaves_.leaves()) {
    const auto end = leaves_.last_end(leaf, size_, budget);
    if (!end)
      return fail(ErrorKind::infeasible, "term {} has loops whose last byte is not found in reasonable time",
                  leaf.term + 1);
    size_ = *end;
  }
  return {};
}

/// Appends the elements of `term`, exceptions included.
Result<void> PatternLookup::expand(std::uint32_t term, std::vector<Written>& elements) const {
  const Term& it = pattern_->terms[term];
  PatternCursor cursor(index_, it.first);
  std::array<std::int64_t, max_columns> vector{};
  for (std::uint64_t n = 0; n < it.count && cursor.next(vector); ++n) {
    const auto element = written(it.first + n, vector.data());
    if (!element) return pass_on(element.error());
    elements.push_back(*element);
  }
  return {};
}

Result<Written> PatternLookup::written(std::uint64_t position, const std::int64_t* vector) const {
  const std::int64_t begin = vector[columns_.logical], length = vector[columns_.length];
  if (length < 0)
    return fail(ErrorKind::bad_input, "element {} has length {}; expected 0 or more", position + 1, length);
  if (length > 0 && begin < 0)
    return fail(ErrorKind::bad_input, "element {} has logical offset {}; expected 0 or more", position + 1, begin);
  if (length > 0 && begin > INT64_MAX - length)
    return fail(ErrorKind::bad_input, "element {} ends after byte 2^63 - 1", position + 1);
  return Written{begin, length > 0 ? begin + length : begin, vector[columns_.physical],
                 columns_.id < 0 ? 0 : vector[columns_.id], position};
}

Piece PatternLookup::piece_at(std::int64_t offset) const {
  if (offset >= size_) return {offset, INT64_MAX - offset, 0, 0, true};
  ByteSearch search;
  search.offset = offset;
  segments_.search(search);
  const std::int64_t until = search.until;
  tree_.search(leaves_, search);
  Holder& found = search.found;
  const bool are_many = leaves_.leaves().size() > 1;
  // The limit may come from older elements: search again for newer ones only.
  if (are_many && search.after > 0 && search.until < found.end) {
    search.until = until;
    tree_.search(leaves_, search);
  }
  if (search.after == 0) return {offset, std::min(search.until, size_) - offset, 0, 0, true};
  if (found.by_position) {
    std::array<std::int64_t, max_columns> vector{};
    index_.element(found.position, vector);
    found.physical = static_cast<std::uint64_t>(vector[static_cast<std::size_t>(columns_.physical)]);
    found.id = columns_.id < 0 ? 0 : static_cast<std::uint64_t>(vector[static_cast<std::size_t>(columns_.id)]);
  }
  return {offset, std::min(search.until, found.end) - offset, static_cast<std::int64_t>(found.id),
          static_cast<std::int64_t>(found.physical + static_cast<std::uint64_t>(offset - found.begin)), false};
}

std::size_t PatternLookup::memory_bytes() const {
  return sizeof(*this) + leaves_.memory_bytes() + tree_.memory_bytes() + segments_.memory_bytes();
}

PieceCursor::PieceCursor(const PatternLookup& lookup, std::int64_t offset, std::int64_t length)
    : lookup_(&lookup), at_(std::max<std::int64_t>(offset, 0)), end_(at_) {
  if (length <= 0 || __builtin_add_overflow(offset, length, &end_)) end_ = length > 0 ? INT64_MAX : at_;
}

bool PieceCursor::next(Piece& piece) {
  while (at_ < end_) {
    Piece found = lookup_->piece_at(at_);
    found.length = std::min(found.length, end_ - at_);
    at_ += found.length;
    if (is_ahead_ && goes_on(ahead_, found)) {
      ahead_.length += found.length;
    } else if (is_ahead_) {
      piece = ahead_;
      ahead_ = found;
      return true;
    } else {
      ahead_ = found;
      is_ahead_ = true;
    }
  }
  if (!is_ahead_) return false;
  is_ahead_ = false;
  piece = ahead_;
  return true;
}

}  // namespace iosig
