// A map of written extents in memory, the newest on top: how PLFS 2.x looks up, and the baseline that patterns are held
// against. Takes memory for every extent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "iosig/analyze/lookup.h"

namespace iosig {

class ExtentMap {
 public:
  /// On top of what is there. `length` > 0, offset + length <= 2^63 - 1. id -1 makes a hole.
  void put(std::int64_t offset, std::int64_t length, std::int64_t id, std::int64_t physical);
  /// What holds the byte at `offset` >= 0, from there on, up to where that ends; a hole ends at the next extent or at
  /// 2^63 - 1.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;
  [[nodiscard]] std::size_t extents() const { return extents_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return extents_.size() * (sizeof(Map::value_type) + 4 * sizeof(void*));
  }

 private:
  struct Extent {
    std::int64_t end = 0, id = 0, physical = 0;
  };
  using Map = std::map<std::int64_t, Extent>;
  Map extents_;  ///< by offset; they do not overlap
};

}  // namespace iosig
