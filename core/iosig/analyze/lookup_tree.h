// Which of many leaves may hold a byte: interval trees in flat arrays, and residues where leaves interleave.
//
// Ranks that write in turn, rank r at (r + i n) s for all i, overlap all over the file as intervals, so every one of
// them would come into question for a byte. By offset modulo n s they are apart. So leaves with one outermost stride
// that overlap as intervals become a group, searched by residue, and so on inwards with the next stride: offset modulo
// the row, then modulo the block. Leaves with one residue (the same rank in several phases) share an entry, which has
// an interval tree over their real extents again.
//
// A byte costs a binary search for each tree on the way, plus what really overlaps there. What remains linear: leaves
// that interleave without a common stride, or with one by which they are not apart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "iosig/analyze/lookup_leaf.h"

namespace iosig {

class LeafTree {
 public:
  LeafTree() = default;
  explicit LeafTree(const LeafIndex& leaves);

  /// Asks the leaves that come into question. `leaves` as when it was made.
  void search(const LeafIndex& leaves, ByteSearch& search) const;

  /// Trees that search by residue.
  [[nodiscard]] std::size_t groups() const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  enum class Kind : std::uint8_t { leaf, group, extents };

  /// An entry while trees are made: leaves of one shape and the same place in the coordinate at hand.
  struct Draft {
    std::int64_t begin = 0, end = 0;  ///< where they may hold something, in that coordinate
    std::int64_t origin = 0;          ///< their base in it
    std::uint64_t newest = 0;
    const LeafIndex::Leaf* shape = nullptr;  ///< one of them
    std::uint32_t target = 0;
    std::uint8_t level = 0;  ///< of the shape: the first that is not yet reduced
    Kind kind = Kind::leaf;
  };
  /// A range of the entries. Those are in order of begin; an interval tree has its root in the middle.
  struct Tree {
    std::uint32_t first = 0, count = 0;
    std::uint64_t modulus = 0;    ///< its coordinate is that of the tree around it modulo this one; 0: the same
    std::uint8_t coordinate = 0;  ///< of how many moduli
    bool is_apart = false;        ///< no two entries overlap
    double entries_per_byte = 0;  ///< of entries that are apart at even distances, else 0
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

  /// About how many entries begin up to `distance` after the first.
  [[nodiscard]] static std::size_t guessed(const Tree& tree, std::int64_t distance) {
    return static_cast<std::size_t>(static_cast<double>(distance) * tree.entries_per_byte) + 1;
  }
  std::uint32_t build(const LeafIndex& leaves, std::vector<Draft> drafts, std::uint8_t coordinate,
                      std::uint64_t modulus);
  std::uint32_t add_tree(std::vector<Draft> drafts, std::uint8_t coordinate, std::uint64_t modulus);
  void group(const LeafIndex& leaves, std::span<Draft> cluster, std::uint8_t coordinate, std::vector<Draft>& out);
  Summary summarize(std::uint32_t first, std::uint32_t last);

  std::uint32_t root_ = 0;
  std::vector<Tree> trees_;
  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::uint64_t> newest_;
  std::vector<Target> targets_;
  std::vector<Summary> below_;  ///< of trees that are not apart
};

}  // namespace iosig
