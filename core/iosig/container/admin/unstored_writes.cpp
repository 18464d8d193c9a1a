#include "iosig/container/admin/unstored_writes.h"

#include <algorithm>
#include <array>

#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

/// Returns the first writes of a frame, those that end at or before `data_bytes`.
IndexedWrites stored_writes(const IndexedWrites& writes, std::int64_t data_bytes) {
  IndexedWrites stored;
  Detector detector(index_detection());
  const auto keep = [&](std::int64_t logical, std::int64_t length, std::int64_t physical, std::int64_t sequence) {
    if (length < 0 || physical > data_bytes - length) return false;
    if (stored.physical_end == 0) {
      stored.opened = stored.closed = sequence;
      stored.physical = physical;
    }
    stored.opened = std::min(stored.opened, sequence);
    stored.closed = std::max(stored.closed, sequence);
    stored.logical_end = std::max(stored.logical_end, logical + length);
    stored.physical_end = physical + length;
    return true;
  };
  for (const IndexEntry& entry : writes.entries) {
    if (!keep(entry.logical, entry.length, entry.physical, entry.sequence)) break;
    stored.entries.push_back(entry);
  }
  std::array<std::int64_t, max_columns> write{};
  for (PatternCursor cursor(writes.pattern); cursor.next(write);) {
    const auto columns = std::span(write).first(index_columns);
    if (!keep(write[logical_offset], write[write_length], write[physical_offset], write[write_sequence])) break;
    detector.push(columns);
  }
  stored.pattern = detector.finish();
  return stored;
}

}  // namespace

std::uint64_t drop_unstored_writes(WriterContent& writer) {
  const std::int64_t there = writer.data_bytes;
  if (there < 0 || writer.physical_end() <= there) return 0;
  std::uint64_t dropped = 0;
  while (writer.physical_end() > there) {
    const IndexedWrites last = std::move(writer.writes.back());
    writer.writes.pop_back();
    dropped += last.count();
    if (last.physical >= there) continue;
    IndexedWrites stored = stored_writes(last, there);
    dropped -= stored.count();
    if (stored.count() > 0) writer.writes.push_back(std::move(stored));
    break;
  }
  writer.tail_writes -= std::min(writer.tail_writes, dropped);
  return dropped;
}

}  // namespace iosig
