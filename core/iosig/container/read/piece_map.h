// A map of all pieces in memory, the newest on top: the lookup of PLFS 2.x, and the baseline to which patterns are
// compared. Needs memory for every piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "iosig/analyze/lookup.h"

namespace iosig {

class PieceMap {
 public:
  /// Puts a piece on top of all others. `length` > 0, offset + length <= 2^63 - 1. An id of -1 makes a hole.
  void put(std::int64_t offset, std::int64_t length, std::int64_t id, std::int64_t physical);
  /// Returns the piece that holds the byte at `offset` >= 0, from that byte on; a hole ends at the next piece or at
  /// 2^63 - 1.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const;
  [[nodiscard]] std::size_t count() const { return pieces_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return pieces_.size() * (sizeof(Map::value_type) + 4 * sizeof(void*));
  }

 private:
  struct Mapped {
    std::int64_t end = 0, id = 0, physical = 0;
  };
  using Map = std::map<std::int64_t, Mapped>;
  /// Whether a piece at `offset` continues the one before it, in the logical file and in the writer's.
  static bool goes_on(const Map::value_type& before, std::int64_t offset, std::int64_t id, std::int64_t physical);

  Map pieces_;  ///< by offset; they do not overlap
};

}  // namespace iosig
