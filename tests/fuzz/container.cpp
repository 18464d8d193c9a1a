// Fuzzes what a container's droppings say. The first byte says what the rest is: a manifest; an index dropping, as it
// is or with every frame's checksum made to fit; a tail; a merged index with its checksum; records of closed
// writers. Indices of two writers are
// merged and looked up, in all forms.
#include <algorithm>
#include <cstring>

#include "iosig/analyze/lookup.h"
#include "iosig/base/crc32c.h"
#include "iosig/container/layout/container_manifest.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/read/irregular_index.h"
#include "iosig/container/read/merge_indices.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t few = 2000;  ///< writes that are looked at one by one

void try_manifest(std::string_view text) {
  const auto manifest = parse_container_manifest(text, "file");
  if (!manifest) {
    hold(manifest.error().kind == ErrorKind::bad_input, "a refusal is bad input");
    return hold(manifest.error().message.starts_with("file: "), "a refusal names the file");
  }
  const auto again = parse_container_manifest(container_manifest_text(*manifest), "written");
  hold(again && *again == *manifest, "what is written is read back");
}

/// A frame with this payload, with its checksum.
Bytes frame_of(std::string_view text) {
  const Bytes payload(text.begin(), text.end());
  Bytes bytes;
  for (const char c : std::string_view("IOX\xf1")) bytes.push_back(static_cast<std::uint8_t>(c));
  for (const std::uint32_t number : {static_cast<std::uint32_t>(payload.size()), crc32c(payload)})
    for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<std::uint8_t>(number >> (8 * n)));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

/// Frames of the pieces that `text` is cut into at 0xfe: kind and payload.
Bytes framed(std::string_view text, std::int64_t version) {
  const IndexHead head{"0123", 0, -1, "host", 1, 2, version};
  Bytes bytes = index_frame(head);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\xfe'), text.size());
    append_frame(frame_of(text.substr(0, end)), head, bytes);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return bytes;
}

void use(const IndexContent& index) {
  ContainerContent content;
  std::uint64_t count = 0;
  for (std::int64_t id = 0; id < 2; ++id) {
    WriterContent writer{index};
    writer.damage.clear();
    writer.id = id;
    writer.data_bytes = 1000;
    content.writers.push_back(std::move(writer));
    for (const IndexDamage& damage : index.damage) content.lost_writes.push_back({id, damage.next_sequence, "damaged"});
    for (const IndexedWrites& writes : index.writes) count += std::min(few, writes.count());
  }
  for (const IndexLoss& part : content.writers.front().unindexed())
    hold(part.length > 0, "what is unindexed has bytes");
  hold(content.lost_writes.empty() == (content.lost_over(-1, 0) == nullptr), "no hole is sure where writes are lost");
  if (count > few) return;
  const std::int64_t size = content.size();
  hold(size >= 0, "a size is not negative");
  (void)content.lost_at_end();
  (void)content.last_sequence();
  const auto extents = piece_map_of(content);
  const auto pattern = merge_indices(content);
  const auto lookup = pattern ? PatternLookup::of(*pattern) : Result<PatternLookup>(pass_on(pattern.error()));
  const bool has_entries =
      std::ranges::any_of(index.writes, [](const IndexedWrites& writes) { return !writes.entries.empty(); });
  const auto table = has_entries ? std::nullopt : piece_table_of(content);
  for (std::int64_t at = 0, steps = 0; at < size && steps < 200; ++steps) {
    if (extents && table) {
      const Piece one = extents->piece_at(at), other = table->piece_at(at);
      hold((one.is_hole || one.id == hole_id) == other.is_hole, "a table has the holes of the map");
      hold(other.is_hole || (one.id == other.id && one.physical == other.physical), "and its pieces");
    }
    const Piece piece = extents ? extents->piece_at(at) : Piece{at, 1, 0, 0, true};
    hold(piece.length > 0, "a piece has bytes");
    if (lookup) hold(lookup->piece_at(at).length > 0, "a piece has bytes");
    if (piece.length > size - at) break;
    at += piece.length;
  }
}

void try_index(const Bytes& bytes) {
  const auto index = read_index(bytes);
  if (!index) {
    hold(!read_only_writes(bytes), "the quick way refuses what is refused");
    hold(index.error().kind == ErrorKind::bad_input, "a refusal is bad input");
    return hold(index.error().message.starts_with("byte "), "a refusal names the place");
  }
  std::uint64_t last = 0;
  for (const IndexDamage& damage : index->damage) {
    hold(damage.at >= last && damage.bytes > 0 && damage.at + damage.bytes <= bytes.size(), "damage lies in the file");
    hold(!damage.is_tail || damage.next_sequence == INT64_MAX, "nothing sound follows the last damage");
    last = damage.at + damage.bytes;
  }
  const bool has_only_writes = index->writes.size() == 1 && index->writes[0].entries.empty() && index->marks.empty() &&
                               index->losses.empty() && index->damage.empty();
  const auto only = read_only_writes(bytes);
  hold(only.has_value() == has_only_writes, "the quick way reads indices of one frame of writes, and no others");
  hold(!only ||
           (only->container == index->head.container && only->id == index->head.id && only->writes == index->writes[0]),
       "the quick way reads the same");
  Bytes again = index_frame(index->head);
  for (const IndexedWrites& writes : index->writes) append_frame(index_frame(writes), index->head, again);
  for (const IndexLoss& loss : index->losses) append_frame(index_frame(loss), index->head, again);
  const auto reread = read_index(again);
  hold(reread && reread->writes == index->writes && reread->losses == index->losses && reread->damage.empty(),
       "what is written is read back");
  use(*index);
}

void try_merged(std::string_view text) {
  const Bytes bytes = frame_of(text);
  const auto merged = parse_index_snapshot(bytes, "file");
  if (!merged) return hold(merged.error().message.starts_with("file: byte "), "a refusal names the place");
  const auto again = parse_index_snapshot(index_frame(*merged), "written");
  hold(again && *again == *merged, "what is written is read back");
  if (merged->table) {
    for (std::int64_t at = 0, steps = 0; at < merged->status.size && steps < 200; ++steps) {
      const Piece piece = merged->table->piece_at(at);
      hold(piece.length > 0, "a piece has bytes");
      if (piece.length > merged->status.size - at) break;
      at += piece.length;
    }
    return;
  }
  if (merged->pattern.count() > few) return;
  const auto lookup = PatternLookup::of(merged->pattern);
  if (!lookup) return;
  for (std::int64_t at = 0, steps = 0; at < merged->status.size && steps < 200; ++steps) {
    const Piece piece = lookup->piece_at(at);
    hold(piece.length > 0, "a piece has bytes");
    if (piece.length > merged->status.size - at) break;
    at += piece.length;
  }
}

/// Records of closed writers, as they are and with checksums that fit.
void try_closed(std::string_view text) {
  const Bytes plain(text.begin(), text.end());
  for (const Bytes& bytes : {plain, framed(text, 1)}) {
    const ClosedWriterRecords records = read_closed_writers(bytes);
    hold(records.damaged_bytes <= bytes.size(), "damage lies in the file");
    Bytes again;
    for (const ClosedWriter& closed : records.writers) {
      hold(closed.index.empty() || std::ssize(closed.index) == closed.index_bytes, "a copy of an index is whole");
      const Bytes frame = index_frame(closed);
      again.insert(again.end(), frame.begin(), frame.end());
      if (!closed.index.empty()) (void)read_index(closed.index);
    }
    for (const SyncedWriter& synced : records.synced) {
      hold(synced.id >= 0 && synced.data_bytes >= 0, "a record of a sync has possible numbers");
      const Bytes frame = index_frame(synced);
      again.insert(again.end(), frame.begin(), frame.end());
    }
    const ClosedWriterRecords reread = read_closed_writers(again);
    hold(reread.synced.size() == records.synced.size(), "what is written of syncs is read back");
    hold(reread.damaged_bytes == 0 && reread.writers.size() == records.writers.size(), "what is written is read back");
  }
}

void try_tail(std::string_view text) {
  Bytes bytes(text.begin(), text.end());
  for (int fits = 0; fits < 2; ++fits) {
    std::int64_t end = -1;
    for (const TailRecord& record : read_tail(bytes)) {
      hold(record.length > 0 && record.count > 0 && record.logical >= 0, "a record stands for writes");
      hold(end < 0 || record.physical == end, "a record goes on where the one before ends");
      end = record.physical + static_cast<std::int64_t>(record.count) * record.length;
    }
    (void)has_lost_records(bytes, 0, 0);
    (void)is_foreign_tail(bytes, 1, 0, 0);
    // Again with checks that fit.
    for (std::size_t at = sizeof(TailRecord); at + sizeof(TailRecord) <= bytes.size(); at += sizeof(TailRecord)) {
      TailRecord record;
      std::memcpy(&record, &bytes[at], sizeof record);
      record.check = record.expected_check();
      std::memcpy(&bytes[at], &record, sizeof record);
    }
  }
}

}  // namespace

void try_one(std::string_view text) {
  if (text.empty()) return;
  const std::string_view rest = text.substr(1);
  if (text.front() == 'c') return try_closed(rest);
  switch (text.front() % 5) {
    case 0: return try_manifest(rest);
    case 1: return try_index({rest.begin(), rest.end()});
    case 2: return try_index(framed(rest, 2));
    case 3: return try_tail(rest);
    default: return try_merged(rest);
  }
}
