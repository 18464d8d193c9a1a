// Which bytes of a physical file stand for a byte range of the logical one: answered from the pattern of what was
// written, without expanding it.
//
// The newest write wins, and what nobody wrote is a hole. Source: docs/references.md#pattern section 2.3, Algorithms 2
// and 3 (one pattern each, no overlaps, offsets that grow). Ours: nests of any depth (lookup_leaf), many of them that
// interleave (lookup_tree), overwriting, holes.
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

/// Bytes that follow each other in the logical and in the physical file.
struct Piece {
  std::int64_t logical = 0;
  std::int64_t length = 0;  ///< never 0
  std::int64_t id = 0;
  std::int64_t physical = 0;
  bool is_hole = false;  ///< nobody wrote it; id and physical are 0

  bool operator==(const Piece&) const = default;
};

class PieceCursor;

/// Made in m log m for m leaves of nests, literals and exceptions. Refers to the pattern, which must stay where it is.
///
/// Memory: 96 bytes for each leaf of a nest, 72 for each loop around it and 48 or a little more for its place among the
/// others; 40 for each literal and exception, up to twice that where they overlap.
class PatternLookup {
 public:
  /// `pattern`: checked(). Later elements are newer; those of no bytes write nothing; what an exception replaces was
  /// never written. Fails: `bad_input` for a column that is not there, and for elements that begin below 0, are shorter
  /// than 0 bytes or end after byte 2^63 - 1; `infeasible` for nests that would have to be expanded and are too large
  /// for that (offsets that follow sums of varying lengths; more than 2^16 elements of one leaf over one byte).
  static Result<PatternLookup> of(const Pattern& pattern, const AccessColumns& columns = {});

  /// The end of the last byte written; 0 when there is none.
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// Calls visit(const Piece&) for what `length` bytes from `offset` on consist of, holes included, in logical order.
  /// Pieces that continue each other in both files and have one id are one. Allocates nothing.
  template <class Visit>
  void find(std::int64_t offset, std::int64_t length, Visit&& visit) const;

  /// What holds the byte at `offset` >= 0, from there on, up to at least the next byte; not merged with what follows.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;

  [[nodiscard]] std::size_t memory_bytes() const;
  /// Groups of leaves that are searched by residue.
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

/// Goes through a byte range in logical order. Refers to the lookup.
class PieceCursor {
 public:
  /// All of the logical file.
  explicit PieceCursor(const PatternLookup& lookup) : PieceCursor(lookup, 0, lookup.size()) {}
  /// Bytes below 0 and from 2^63 - 1 on are left out.
  PieceCursor(const PatternLookup& lookup, std::int64_t offset, std::int64_t length);

  /// The next piece, as in PatternLookup::find; false at the end, which leaves `piece` alone.
  bool next(Piece& piece);

 private:
  const PatternLookup* lookup_;
  std::int64_t at_, end_;
  bool is_ahead_ = false;
  Piece ahead_;  ///< ends at at_, and may go on
};

template <class Visit>
void PatternLookup::find(std::int64_t offset, std::int64_t length, Visit&& visit) const {
  PieceCursor cursor(*this, offset, length);
  for (Piece piece; cursor.next(piece);) visit(static_cast<const Piece&>(piece));
}

}  // namespace iosig
