#include "iosig/container/read/piece_map.h"

#include <algorithm>

namespace iosig {

void PieceMap::put(std::int64_t offset, std::int64_t length, std::int64_t id, std::int64_t physical) {
  const std::int64_t end = offset + length;
  auto next = pieces_.lower_bound(offset);
  if (next != pieces_.begin()) {
    const auto before = std::prev(next);
    const Mapped old = before->second;
    if (old.end > offset) {
      before->second.end = offset;
      if (old.end > end) pieces_.emplace_hint(next, end, Mapped{old.end, old.id, old.physical + (end - before->first)});
    } else if (old.end == offset && old.id == id && id >= 0 && old.physical + (offset - before->first) == physical) {
      // The piece continues the previous one in both files.
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
