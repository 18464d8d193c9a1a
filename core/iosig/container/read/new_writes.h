// Writes that were made after the merged index was read: a map of pieces that is laid over it. A write is laid over
// those with smaller sequence numbers only, so the order in which writes are added does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "iosig/analyze/lookup.h"

namespace iosig {

class NewWrites {
 public:
  /// Adds a write. `length` > 0, logical + length <= 2^63 - 1. Of two writes with the same number, which then belong to
  /// one writer, the one that is added later wins.
  void add(std::int64_t logical, std::int64_t length, std::int64_t id, std::int64_t physical, std::int64_t sequence);
  /// Replaces `piece` of the merged index by what these writes show at its first byte, or cuts it where they begin.
  void lay_over(Piece& piece) const;

  [[nodiscard]] bool is_empty() const { return pieces_.empty(); }
  [[nodiscard]] std::size_t count() const { return pieces_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return pieces_.size() * (sizeof(Map::value_type) + 4 * sizeof(void*));
  }

 private:
  struct Mapped {
    std::int64_t end = 0, id = 0, physical = 0, sequence = 0;
  };
  using Map = std::map<std::int64_t, Mapped>;
  void cut_at(std::int64_t offset);

  Map pieces_;  ///< by logical offset; they do not overlap
};

}  // namespace iosig
