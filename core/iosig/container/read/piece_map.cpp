#include "iosig/container/read/piece_map.h"

#include <algorithm>

namespace iosig {

bool PieceMap::goes_on(const Map::value_type& before, std::int64_t offset, std::int64_t id, std::int64_t physical) {
  const auto& [begin, old] = before;
  return old.end == offset && old.id == id && id >= 0 && old.physical + (offset - begin) == physical;
}

/// Example: the map has [0, 100) of writer 1, and writer 2 puts [40, 60) on top. 1. The piece before is cut to [0, 40),
/// and its rest becomes [60, 100), at physical offset + 60. 2. Nothing else is covered. 3. [40, 60) is inserted.
///
/// 1. Cut the piece that begins before `offset`, or extend it: see goes_on().
/// 2. Remove the pieces that the new one covers; of one that ends behind it, keep the rest.
/// 3. Insert the new one, unless it is a hole.
void PieceMap::put(std::int64_t offset, std::int64_t length, std::int64_t id, std::int64_t physical) {
  const std::int64_t end = offset + length;
  auto next = pieces_.lower_bound(offset);
  if (next != pieces_.begin()) {
    const auto before = std::prev(next);
    const Mapped old = before->second;
    if (old.end > offset) {
      before->second.end = offset;
      if (old.end > end) pieces_.emplace_hint(next, end, Mapped{old.end, old.id, old.physical + (end - before->first)});
    } else if (goes_on(*before, offset, id, physical)) {
      while (next != pieces_.end() && next->second.end <= end) next = pieces_.erase(next);
      if (next == pieces_.end() || next->first >= end) {
        before->second.end = end;
        return;
      }
    }
  }
  next = pieces_.lower_bound(offset);
  while (next != pieces_.end() && next->first < end) {
    const auto [begin, old] = *next;
    next = pieces_.erase(next);
    if (old.end > end) pieces_.emplace_hint(next, end, Mapped{old.end, old.id, old.physical + (end - begin)});
  }
  if (id >= 0) pieces_.emplace_hint(next, offset, Mapped{end, id, physical});
}

Piece PieceMap::piece_at(std::int64_t offset) const {
  const auto next = pieces_.upper_bound(offset);
  if (next != pieces_.begin()) {
    const auto& [begin, extent] = *std::prev(next);
    if (extent.end > offset) return {offset, extent.end - offset, extent.id, extent.physical + (offset - begin), false};
  }
  return {offset, (next == pieces_.end() ? INT64_MAX : next->first) - offset, 0, 0, true};
}

}  // namespace iosig
