#include "iosig/container/read/extent_map.h"

#include <algorithm>

namespace iosig {

void ExtentMap::put(std::int64_t offset, std::int64_t length, std::int64_t id, std::int64_t physical) {
  const std::int64_t end = offset + length;
  auto next = extents_.lower_bound(offset);
  if (next != extents_.begin()) {
    const auto before = std::prev(next);
    const Extent old = before->second;
    if (old.end > offset) {
      before->second.end = offset;
      if (old.end > end)
        extents_.emplace_hint(next, end, Extent{old.end, old.id, old.physical + (end - before->first)});
    } else if (old.end == offset && old.id == id && id >= 0 && old.physical + (offset - before->first) == physical) {
      // Goes on where the one before ends, in both files.
      while (next != extents_.end() && next->second.end <= end) next = extents_.erase(next);
      if (next == extents_.end() || next->first >= end) {
        before->second.end = end;
        return;
      }
    }
  }
  next = extents_.lower_bound(offset);
  while (next != extents_.end() && next->first < end) {
    const auto [begin, old] = *next;
    next = extents_.erase(next);
    if (old.end > end) extents_.emplace_hint(next, end, Extent{old.end, old.id, old.physical + (end - begin)});
  }
  if (id >= 0) extents_.emplace_hint(next, offset, Extent{end, id, physical});
}

Piece ExtentMap::piece_at(std::int64_t offset) const {
  const auto next = extents_.upper_bound(offset);
  if (next != extents_.begin()) {
    const auto& [begin, extent] = *std::prev(next);
    if (extent.end > offset) return {offset, extent.end - offset, extent.id, extent.physical + (offset - begin), false};
  }
  return {offset, (next == extents_.end() ? INT64_MAX : next->first) - offset, 0, 0, true};
}

}  // namespace iosig
