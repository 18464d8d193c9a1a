// Which element of one leaf of a nest holds a byte: by division, without expanding the nest.
//
// A leaf's logical offsets are base + s1 i1 + .. + sd id. With the loops in order of their strides (negative ones
// counted from their other end), the index of a loop is the quotient by its stride where the stride is at least what
// the loops within it span: the digits of a mixed radix. Where it is less, elements of the leaf overlap, and a few
// indices come into question; the newest element wins. Trip counts that depend on other loops narrow the indices down.
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

/// An element that holds the byte asked for.
struct Holder {
  std::uint64_t position = 0;
  std::int64_t begin = 0, end = 0;     ///< its logical offsets; `end` with newer ones that continue it
  std::uint64_t next = 0;              ///< where there are such, how far after the byte the first begins; else 0
  std::uint64_t physical = 0, id = 0;  ///< at begin
  bool by_position = false;            ///< those are to be fetched
};

/// The search for the newest element that holds a byte, while it passes through what may.
struct ByteSearch {
  std::int64_t offset = 0;         ///< the byte
  std::int64_t until = INT64_MAX;  ///< nothing that is newer than the element found begins in (offset, until)
  std::uint64_t after = 0;         ///< position of the element found + 1; 0: none yet
  Holder found;

  /// Something newer may begin `distance` > 0 bytes after `offset`.
  void limit(std::uint64_t distance) {
    if (distance < static_cast<std::uint64_t>(until - offset)) until = offset + static_cast<std::int64_t>(distance);
  }
  /// `holder` counts if it is newer than what was found.
  void meet(const Holder& holder) {
    if (holder.position + 1 == after) return;
    const std::uint64_t beaten = holder.position < after ? holder.next : found.next;
    if (beaten > 0) limit(beaten);
    if (holder.position < after) return;
    after = holder.position + 1;
    found = holder;
  }
};

/// The leaves of a pattern's nests, each with its loops in order of stride. Refers to the pattern.
class LeafIndex {
 public:
  /// A loop around a leaf. Indices count from the end where the logical offset is least, coefficients are modulo 2^64.
  struct Level {
    std::uint64_t stride = 0;
    std::uint64_t trips = 0;  ///< the most
    std::uint64_t reach = 0;  ///< what the levels after this one and an element span, from the least offset on
    std::uint64_t length = 0, physical = 0, id = 0, position = 0;
    std::uint64_t newest = 0;  ///< the most that the levels after this one add to the position
    std::uint32_t loop = 0;    ///< node
    std::uint8_t depth = 0;    ///< in the nest, the outermost loop at 0
    bool is_mirrored = false;
  };

  struct Leaf {
    std::int64_t base = 0;            ///< the least logical offset
    std::int64_t begin = 0, end = 0;  ///< bounds of what it writes
    std::uint64_t length = 0, physical = 0, id = 0;
    std::uint64_t position = 0;  ///< of the element with all indices 0
    std::uint64_t newest = 0;    ///< no element has a higher position
    std::uint32_t term = 0, node = 0;
    std::uint32_t first_level = 0;
    std::uint32_t exceptions = 0, exceptions_end = 0;  ///< of the term
    std::uint8_t levels = 0;
    std::uint8_t free = 0;  ///< levels before this one are tried index by index; those after it do not move the element
    bool is_solved = false;    ///< level `free` does move it, and is solved for; else it is like those after it
    bool is_plain = false;     ///< a mixed radix, and all elements are there and as long as each other
    bool is_run = false;       ///< and those of the last level continue each other in both files, each newer
    bool is_constant = false;  ///< no trip count of the nest depends on a loop
    bool by_position = false;  ///< physical offset and id are not affine: PatternIndex has them
  };

  LeafIndex(const Pattern& pattern, const AccessColumns& columns) : pattern_(&pattern), columns_(columns) {}

  /// Adds the leaves of the nest `term`, or nothing: "" or why it cannot be indexed. `index`: of the pattern.
  std::string add(std::uint32_t term, const PatternIndex& index);

  /// Lets `leaf` say what it knows. Takes a division for each loop unless elements overlap.
  void search(const Leaf& leaf, ByteSearch& search) const;
  /// The end of the last byte that `leaf` writes if that is above `least`, else `least`. Nothing when `budget`,
  /// which falls by the steps taken, is used up.
  [[nodiscard]] std::optional<std::int64_t> last_end(const Leaf& leaf, std::int64_t least, std::int64_t& budget) const;

  /// After the last add().
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
