// Maps byte ranges of the logical file to physical files, from the pattern of the writes and without expanding it.
//
// The newest write wins; bytes that were never written are holes. Source: docs/references.md#pattern section 2.3,
// Algorithms 2 and 3 (one pattern each, no overlaps, growing offsets). Ours: nests of any depth (lookup_leaf), many
// interleaved nests (lookup_tree), overwriting, holes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "iosig/analyze/lookup_leaf.h"
#include "iosig/analyze/lookup_segments.h"
#include "iosig/analyze/lookup_tree.h"
#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// A byte range that is contiguous in both the logical and the physical file.
struct Piece {
  std::int64_t logical = 0;
  std::int64_t length = 0;  ///< never 0
  std::int64_t id = 0;
  std::int64_t physical = 0;
  bool is_hole = false;  ///< never written; id and physical are 0

  bool operator==(const Piece&) const = default;
};

class PieceCursor;

/// The index of a pattern for lookups. Construction takes O(m log m) for m leaves of nests, literals and exceptions.
/// Refers to the pattern, which must not move.
///
/// Memory: 96 bytes per leaf of a nest, 72 per loop around it and at least 48 for its entry in the tree; 40 per literal
/// and exception, up to twice that where they overlap.
class PatternLookup {
 public:
  /// Indexes `pattern`, which must be checked(). Later elements are newer; elements of no bytes write nothing; an
  /// element replaced by an exception was never written. Fails with `bad_input` for a missing column and for elements
  /// that begin below 0, have a negative length or end after byte 2^63 - 1; with `infeasible` for nests that are too
  /// large to be expanded where that is necessary (offsets that follow sums of varying lengths; more than 2^16 elements
  /// of one leaf over one byte).
  static Result<PatternLookup> of(const Pattern& pattern, const AccessColumns& columns = {});

  /// Returns the end of the last byte written; 0 if there is none.
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// Calls visit(const Piece&) for each piece of `length` bytes from `offset` on, holes included, in logical order.
  /// Merges pieces that are contiguous in both files and have the same id. Allocates nothing.
  template <class Visit>
  void find(std::int64_t offset, std::int64_t length, Visit&& visit) const;

  /// Returns the piece from `offset` >= 0 on. It may end before the next change and is not merged with its successor.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;

  [[nodiscard]] std::size_t memory_bytes() const;
  /// Returns the number of groups of leaves that are searched by residue.
  [[nodiscard]] std::size_t groups() const { return tree_.groups(); }

 private:
  PatternLookup(const Pattern& pattern, const AccessColumns& columns);
  Result<void> make();
  Result<void> expand(std::uint32_t term, std::vector<Written>& elements) const;
  [[nodiscard]] Result<Written> written(std::uint64_t position, const std::int64_t* vector) const;

  const Pattern* pattern_;
  AccessColumns columns_;
  PatternIndex index_;
  LeafIndex leaves_;
  LeafTree tree_;
  Segments segments_;
  std::int64_t size_ = 0;
};

/// Iterates over a byte range in logical order. Refers to the lookup.
class PieceCursor {
 public:
  /// Covers the whole logical file.
  explicit PieceCursor(const PatternLookup& lookup) : PieceCursor(lookup, 0, lookup.size()) {}
  /// Covers `length` bytes from `offset` on, except bytes below 0 and from 2^63 - 1 on.
  PieceCursor(const PatternLookup& lookup, std::int64_t offset, std::int64_t length);

  /// Sets `piece` to the next piece, as in PatternLookup::find. Returns false at the end and leaves `piece` unchanged.
  bool next(Piece& piece);

 private:
  const PatternLookup* lookup_;
  std::int64_t at_, end_;
  bool is_ahead_ = false;
  Piece ahead_;  ///< ends at at_; later pieces may extend it
};

template <class Visit>
void PatternLookup::find(std::int64_t offset, std::int64_t length, Visit&& visit) const {
  PieceCursor cursor(*this, offset, length);
  for (Piece piece; cursor.next(piece);) visit(static_cast<const Piece&>(piece));
}

}  // namespace iosig
