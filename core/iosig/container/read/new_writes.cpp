#include "iosig/container/read/new_writes.h"

#include <algorithm>
#include <iterator>

namespace iosig {

/// Makes two pieces of one that has bytes on both sides of `offset`.
void NewWrites::cut_at(std::int64_t offset) {
  const auto next = pieces_.lower_bound(offset);
  if (next == pieces_.begin()) return;
  auto& [begin, piece] = *std::prev(next);
  if (piece.end <= offset) return;
  pieces_.emplace_hint(next, offset, Mapped{piece.end, piece.id, piece.physical + (offset - begin), piece.sequence});
  piece.end = offset;
}

void NewWrites::add(std::int64_t logical, std::int64_t length, std::int64_t id, std::int64_t physical,
                    std::int64_t sequence) {
  const std::int64_t end = logical + length;
  auto next = pieces_.lower_bound(logical);
  const bool is_free = next == pieces_.end() || next->first >= end;
  if (is_free && next != pieces_.begin()) {  // most often the write goes on where the last one ended
    auto& [begin, before] = *std::prev(next);
    if (before.end == logical && before.id == id && before.sequence == sequence &&
        before.physical + (logical - begin) == physical) {
      before.end = end;
      return;
    }
  }
  cut_at(logical);
  cut_at(end);
  next = pieces_.lower_bound(logical);
  for (std::int64_t at = logical; at < end;) {
    if (next != pieces_.end() && next->first == at) {
      const std::int64_t piece_end = next->second.end;
      if (next->second.sequence <= sequence) next->second = {piece_end, id, physical + (at - logical), sequence};
      at = piece_end;
      ++next;
    } else {
      const std::int64_t gap_end = next == pieces_.end() ? end : std::min(end, next->first);
      pieces_.emplace_hint(next, at, Mapped{gap_end, id, physical + (at - logical), sequence});
      at = gap_end;
    }
  }
}

void NewWrites::lay_over(Piece& piece) const {
  const auto next = pieces_.upper_bound(piece.logical);
  if (next != pieces_.begin()) {
    const auto& [begin, over] = *std::prev(next);
    if (over.end > piece.logical) {
      piece = {piece.logical, over.end - piece.logical, over.id, over.physical + (piece.logical - begin), false};
      return;
    }
  }
  if (next != pieces_.end()) piece.length = std::min(piece.length, next->first - piece.logical);
}

}  // namespace iosig
