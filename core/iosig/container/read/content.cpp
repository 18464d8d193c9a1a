#include "iosig/container/read/content.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "iosig/model/pattern_cursor.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_walked = 1u << 28;  ///< writes; no writer puts more into a frame with several numbers

/// Returns the end of the writes with a sequence number above `after`.
std::int64_t end_after(const IndexedWrites& writes, std::int64_t after) {
  if (writes.closed <= after) return 0;
  if (writes.opened > after || writes.pattern.count() > max_walked) return writes.logical_end;
  std::int64_t end = 0;
  for (const IndexEntry& entry : writes.entries)
    if (entry.sequence > after) end = std::max(end, entry.logical + entry.length);
  std::array<std::int64_t, max_columns> vector{};
  for (PatternCursor cursor(writes.pattern); cursor.next(vector);)
    if (vector[write_sequence] > after && vector[logical_offset] >= 0 && vector[write_length] >= 0 &&
        vector[write_length] <= INT64_MAX - vector[logical_offset])
      end = std::max(end, vector[logical_offset] + vector[write_length]);
  return end;
}

/// Returns the last truncation mark; its number is -1 if there is none.
IndexMark last_cut(const std::vector<WriterContent>& writers) {
  IndexMark last{.sequence = -1};
  for (const WriterContent& writer : writers)
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::truncate && mark.sequence > last.sequence) last = mark;
  return last;
}

const WriterContent* writer_of(std::int64_t id, const std::vector<WriterContent>& writers) {
  const auto found = std::ranges::lower_bound(writers, id, {}, &WriterContent::id);
  return found != writers.end() && found->id == id ? &*found : nullptr;
}

}  // namespace

std::int64_t WriterContent::synced_data(const SyncedWriter* recorded) const {
  return std::max(synced ? synced->data : 0, recorded != nullptr ? recorded->data_bytes : 0);
}

std::vector<IndexLoss> WriterContent::unindexed() const {
  std::vector<IndexLoss> unindexed;
  std::int64_t at = 0;
  const auto add = [&](std::int64_t end, bool is_unfinished) {
    const bool is_given_up = std::ranges::any_of(
        losses, [&](const IndexLoss& loss) { return loss.physical <= at && end - loss.physical <= loss.length; });
    if (end > at && !is_given_up) unindexed.push_back({at, end - at, is_unfinished});
  };
  for (const IndexedWrites& each : writes) {
    add(each.physical, false);
    at = std::max(at, each.physical_end);
  }
  add(data_bytes, has_tail);
  return unindexed;
}

std::int64_t ContainerContent::size() const {
  const IndexMark cut = last_cut(writers);
  std::int64_t size = cut.offset;
  for (const WriterContent& writer : writers) {
    for (const IndexMark& mark : writer.marks)
      if (mark.kind == IndexMark::Kind::extend && mark.sequence > cut.sequence) size = std::max(size, mark.offset);
    for (const IndexedWrites& writes : writer.writes) size = std::max(size, end_after(writes, cut.sequence));
  }
  return size;
}

const LostWrites* ContainerContent::lost_over(std::int64_t id, std::int64_t physical) const {
  if (lost_writes.empty()) return nullptr;
  std::int64_t sequence = -1;
  if (const WriterContent* const writer = writer_of(id, writers)) {
    const auto after = std::ranges::upper_bound(writer->writes, physical, {}, &IndexedWrites::physical);
    if (after != writer->writes.begin()) sequence = std::prev(after)->opened;
  }
  for (const LostWrites& lost : lost_writes)
    if (lost.sequence >= sequence) return &lost;
  return nullptr;
}

std::int64_t ContainerContent::bytes_there(std::int64_t id, std::int64_t physical, std::int64_t length) const {
  const WriterContent* const writer = writer_of(id, writers);
  const std::int64_t data_bytes = writer == nullptr ? 0 : std::max<std::int64_t>(0, writer->data_bytes);
  return physical < 0 ? 0 : std::clamp<std::int64_t>(data_bytes - physical, 0, length);
}

const LostWrites* ContainerContent::lost_at_end() const {
  const std::int64_t cut = lost_writes.empty() ? 0 : last_cut(writers).sequence;
  const auto found = std::ranges::find_if(lost_writes, [&](const LostWrites& lost) { return lost.sequence > cut; });
  return found == lost_writes.end() ? nullptr : &*found;
}

std::int64_t ContainerContent::last_sequence_at(std::int64_t id, std::int64_t physical) const {
  std::int64_t last = 0;
  if (writers.empty()) return INT64_MAX;  // an index snapshot
  if (id < 0) {
    for (const WriterContent& each : writers)
      for (const IndexMark& mark : each.marks) last = std::max(last, mark.sequence);
    return last;
  }
  const WriterContent* const writer = writer_of(id, writers);
  if (writer == nullptr) return INT64_MAX;
  const auto after = std::ranges::upper_bound(writer->writes, physical, {}, &IndexedWrites::physical);
  return after == writer->writes.begin() ? INT64_MAX : std::prev(after)->closed;
}

std::int64_t ContainerContent::last_sequence() const {
  std::int64_t last = 0;
  for (const WriterContent& writer : writers) {
    for (const IndexMark& mark : writer.marks) last = std::max(last, mark.sequence);
    for (const IndexedWrites& writes : writer.writes) last = std::max(last, writes.closed);
  }
  return last;
}

}  // namespace iosig
