// Finds the element of one leaf of a nest that holds a byte, by division and without expanding the nest.
//
// A leaf's logical offsets are base + s1 i1 + .. + sd id. The loops are sorted by stride (loops of negative stride
// count from their last turn). Where the stride of a loop is at least the span of the loops within it, its index is the
// quotient by the stride, as for the digits of a mixed radix. Where it is less, elements of the leaf overlap and
// several indices are candidates; the newest element wins. Trip counts that depend on other loops narrow the
// candidates.
//
// Example: for offsets 100 i + 10 j with j < 5 and lengths of 10, byte 237 has i = 237 / 100 = 2 and j = 37 / 10 = 3.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "iosig/model/access_columns.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// An element that holds the byte in question.
struct Holder {
  std::uint64_t position = 0;
  std::int64_t begin = 0, end = 0;  ///< logical offsets of the element; `end` includes newer elements that continue it
  std::uint64_t next = 0;           ///< distance from the byte to the first of those; 0 if there are none
  std::uint64_t physical = 0, id = 0;  ///< at begin
  bool by_position = false;            ///< physical and id are not set: PatternIndex has them
};

/// The state of a search for the newest element that holds a byte, passed through all candidates.
struct ByteSearch {
  std::int64_t offset = 0;         ///< the byte
  std::int64_t until = INT64_MAX;  ///< no newer element than the one found begins in (offset, until)
  std::uint64_t after = 0;         ///< position of the element found + 1; 0: none yet
  Holder found;

  /// Records that a newer element may begin `distance` > 0 bytes after `offset`.
  void limit(std::uint64_t distance) {
    if (distance < static_cast<std::uint64_t>(until - offset)) until = offset + static_cast<std::int64_t>(distance);
  }
  /// Takes `holder` if it is newer than the element found.
  void take_if_newer(const Holder& holder) {
    if (holder.position + 1 == after) return;
    const std::uint64_t beaten = holder.position < after ? holder.next : found.next;
    if (beaten > 0) limit(beaten);
    if (holder.position < after) return;
    after = holder.position + 1;
    found = holder;
  }
};

/// The leaves of a pattern's nests, each with its loops sorted by stride. Refers to the pattern.
class LeafIndex {
 public:
  /// A loop around a leaf. Indices count from the end with the least logical offset; coefficients are modulo 2^64.
  struct Level {
    std::uint64_t stride = 0;
    std::uint64_t trips = 0;  ///< maximum trip count
    std::uint64_t reach = 0;  ///< span of the levels after this one and an element, from the least offset on
    std::uint64_t length = 0, physical = 0, id = 0, position = 0;
    std::uint64_t newest = 0;  ///< maximum that the levels after this one add to the position
    std::uint32_t loop = 0;    ///< node
    std::uint8_t depth = 0;    ///< in the nest, the outermost loop at 0
    bool is_mirrored = false;
  };

  struct Leaf {
    std::int64_t base = 0;            ///< the least logical offset
    std::int64_t begin = 0, end = 0;  ///< bounds of the bytes written
    std::uint64_t length = 0, physical = 0, id = 0;
    std::uint64_t position = 0;  ///< of the element with all indices 0
    std::uint64_t newest = 0;    ///< no element has a higher position
    std::uint32_t term = 0, node = 0;
    std::uint32_t first_level = 0;
    std::uint32_t exceptions = 0, exceptions_end = 0;  ///< of the term
    std::uint8_t levels = 0;
    std::uint8_t free = 0;  ///< levels before this one are tried index by index; those after it do not move the element
    bool is_solved = false;  ///< level `free` moves the element and is solved for; otherwise it is like those after it
    bool is_plain = false;   ///< a mixed radix with elements of equal length, none missing
    bool is_run = false;     ///< is_plain, and elements of the last level continue each other in both files, each newer
                             ///< than the one before
    bool is_constant = false;  ///< no trip count of the nest depends on a loop
    bool by_position = false;  ///< physical offset and id are not affine and come from PatternIndex
  };

  LeafIndex(const Pattern& pattern, const AccessColumns& columns) : pattern_(&pattern), columns_(columns) {}

  /// Adds the leaves of the nest `term` of the pattern that `index` indexes. Returns "" or the reason why the nest
  /// cannot be indexed; then nothing is added.
  std::string add(std::uint32_t term, const PatternIndex& index);

  /// Searches one leaf. Takes one division per loop unless elements overlap.
  void search(const Leaf& leaf, ByteSearch& search) const;
  /// Returns the end of the last byte that `leaf` writes, or `least` if that is greater. Every step decrements
  /// `budget`; returns nothing when it is used up.
  [[nodiscard]] std::optional<std::int64_t> last_end(const Leaf& leaf, std::int64_t least, std::int64_t& budget) const;

  /// Releases unused memory. To be called after the last add().
  void shrink() {
    leaves_.shrink_to_fit();
    levels_.shrink_to_fit();
  }

  [[nodiscard]] const std::vector<Leaf>& leaves() const { return leaves_; }
  [[nodiscard]] std::span<const Level> levels_of(const Leaf& leaf) const {
    return {levels_.data() + leaf.first_level, leaf.levels};
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    return leaves_.capacity() * sizeof(Leaf) + levels_.capacity() * sizeof(Level);
  }

 private:
  friend class LeafSearch;
  friend class LeafMaker;

  [[nodiscard]] bool is_exception(const Leaf& leaf, std::uint64_t position) const;

  const Pattern* pattern_;
  AccessColumns columns_;
  std::vector<Leaf> leaves_;
  std::vector<Level> levels_;
};

}  // namespace iosig
