// Finds the leaves that may hold a byte: interval trees in flat arrays, and residues where leaves interleave.
//
// Example: n ranks write in turns, rank r at (r + i n) s for all i. As intervals all ranks overlap over the whole file,
// so all would be candidates for every byte; by offset modulo n s they are disjoint. Therefore leaves that share an
// outermost stride and overlap as intervals become a group, searched by residue. The next stride inwards is treated
// alike: offset modulo the row, then modulo the block. Leaves with one residue (the same rank in several phases) share
// an entry with an interval tree over their real extents.
//
// A byte costs a binary search per tree on the way plus one visit per leaf that really overlaps there. The search
// remains linear for leaves that interleave without a common stride, or with one that does not separate them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "iosig/analyze/lookup_leaf.h"

namespace iosig {

class LeafTree {
 public:
  LeafTree() = default;
  explicit LeafTree(const LeafIndex& leaves);

  /// Searches the candidate leaves. `leaves`: those of the constructor.
  void search(const LeafIndex& leaves, ByteSearch& search) const;

  /// Returns the number of trees that search by residue.
  [[nodiscard]] std::size_t groups() const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  enum class Kind : std::uint8_t { leaf, group, extents };

  /// An entry during construction: leaves of one shape at the same place in the current coordinate.
  struct Draft {
    std::int64_t begin = 0, end = 0;  ///< the range that they may occupy in that coordinate
    std::int64_t origin = 0;          ///< their base in that coordinate
    std::uint64_t newest = 0;
    const LeafIndex::Leaf* shape = nullptr;  ///< one of them
    std::uint32_t target = 0;
    std::uint8_t level = 0;  ///< of the shape: the first level that is not yet reduced
    Kind kind = Kind::leaf;
  };
  /// A range of the entries, sorted by begin; the root of an interval tree is in the middle.
  struct Tree {
    std::uint32_t first = 0, count = 0;
    std::uint64_t modulus = 0;    ///< the coordinate is that of the parent tree modulo this; 0: the same
    std::uint8_t coordinate = 0;  ///< number of moduli applied
    bool is_apart = false;        ///< no two entries overlap
    double entries_per_byte = 0;  ///< for disjoint entries at even distances, else 0
  };
  struct Summary {  ///< of all entries below one in its interval tree
    std::int64_t end = 0;
    std::uint64_t newest = 0;
  };
  struct Target {
    std::uint32_t index;  ///< of the leaf or tree
    Kind kind;
  };
  struct Query;

  /// Estimates how many entries begin up to `distance` after the first.
  [[nodiscard]] static std::size_t guessed(const Tree& tree, std::int64_t distance) {
    return static_cast<std::size_t>(static_cast<double>(distance) * tree.entries_per_byte) + 1;
  }
  std::uint32_t build(const LeafIndex& leaves, std::vector<Draft> drafts, std::uint8_t coordinate,
                      std::uint64_t modulus);
  std::uint32_t add_tree(std::vector<Draft> drafts, std::uint8_t coordinate, std::uint64_t modulus);
  void group(const LeafIndex& leaves, std::span<Draft> cluster, std::uint8_t coordinate, std::vector<Draft>& out);
  std::optional<Draft> grouped(const LeafIndex& leaves, const std::vector<Draft>& members, std::uint8_t coordinate,
                               std::uint64_t modulus);
  static std::vector<std::uint64_t> residue_and_shape(const LeafIndex& leaves, const Draft& draft,
                                                      std::uint64_t modulus);
  static void append_arc(std::vector<Draft>& inner, Draft entry, std::int64_t residue, std::int64_t reach,
                         std::int64_t modulus);
  Summary summarize(std::uint32_t first, std::uint32_t last);

  std::uint32_t root_ = 0;
  std::vector<Tree> trees_;
  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::uint64_t> newest_;
  std::vector<Target> targets_;
  std::vector<Summary> below_;  ///< of trees with overlapping entries
};

}  // namespace iosig
