#include "iosig/container/layout/index_frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "iosig/base/crc32c.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/model/literals.h"

namespace iosig {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<std::uint8_t, 4> frame_magic = {'I', 'O', 'X', 0xf1};
constexpr std::size_t frame_head = 12;  // magic, length of the payload, CRC-32C of the payload
constexpr std::uint8_t frame_version = 1;
constexpr std::uint8_t closed_version = 2;  ///< of a record of a closed writer; 1 had no checksums of the data
constexpr std::size_t entry_bytes = 56;

enum Kind : std::uint8_t {
  kind_head = 0,
  kind_pattern = 1,
  kind_entries = 2,
  kind_mark = 3,
  kind_snapshot = 4,
  kind_loss = 5,
  kind_closed = 6,
  kind_table = 7,
  kind_synced = 8,
};

void append_fixed(std::uint64_t value, std::size_t bytes, Bytes& out) {
  for (std::size_t n = 0; n < bytes; ++n) out.push_back(static_cast<std::uint8_t>(value >> (8 * n)));
}

std::uint64_t fixed_at(std::span<const std::uint8_t> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t n = 0; n < size; ++n) value |= static_cast<std::uint64_t>(bytes[at + n]) << (8 * n);
  return value;
}

void append_number(std::int64_t value, Bytes& out) { append_varint(zigzag(value), out); }

void append_text(std::string_view text, Bytes& out) {
  append_varint(text.size(), out);
  out.insert(out.end(), text.begin(), text.end());
}

std::array<std::uint8_t, frame_head> head_of_frame(std::span<const std::uint8_t> payload) {
  std::array<std::uint8_t, frame_head> head{};
  std::ranges::copy(frame_magic, head.begin());
  const std::uint32_t checksum = crc32c(payload);
  for (std::size_t n = 0; n < 4; ++n) {
    head[4 + n] = static_cast<std::uint8_t>(payload.size() >> (8 * n));
    head[8 + n] = static_cast<std::uint8_t>(checksum >> (8 * n));
  }
  return head;
}

Bytes framed(const Bytes& payload) {
  const auto head = head_of_frame(payload);
  Bytes frame;
  frame.reserve(frame_head + payload.size());
  frame.assign(head.begin(), head.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

/// Parses a payload. A missing field makes it invalid.
class Payload {
 public:
  explicit Payload(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::int64_t number() {
    const auto code = read_varint(bytes_, at_);
    if (!code) is_sound_ = false;
    return code ? unzigzag(*code) : 0;
  }
  std::uint64_t fixed() {
    hold(bytes_.size() - at_ >= 8);
    if (!is_sound_) return 0;
    at_ += 8;
    return fixed_at(bytes_, at_ - 8, 8);
  }
  std::string_view text() {
    const auto part = bytes();
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::span<const std::uint8_t> bytes() {
    const auto size = read_varint(bytes_, at_);
    if (!size || *size > bytes_.size() - at_) {
      is_sound_ = false;
      return {};
    }
    at_ += *size;
    return bytes_.subspan(at_ - *size, *size);
  }
  std::span<const std::uint8_t> rest() { return bytes_.subspan(std::exchange(at_, bytes_.size())); }
  void hold(bool sound) { is_sound_ = is_sound_ && sound; }
  [[nodiscard]] bool is_sound() const { return is_sound_ && at_ == bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool is_sound_ = true;
};

/// An IndexHead that refers to the bytes it was read from.
struct HeadFields {
  std::int64_t version = 0, id = 0, target = -1, pid = 0, created_unix_ns = 0;
  std::string_view container{}, host{};
};

std::optional<HeadFields> head_of(Payload payload) {
  HeadFields head;
  head.version = payload.number();
  payload.hold(head.version >= 1 && head.version <= newest_container_version);
  head.container = payload.text();
  head.id = payload.number();
  head.target = payload.number();
  head.host = payload.text();
  head.pid = payload.number();
  head.created_unix_ns = payload.number();
  payload.hold(head.id >= 0);
  if (!payload.is_sound()) return {};
  return head;
}

void read_entries(std::span<const std::uint8_t> bytes, std::vector<IndexEntry>& entries, Payload& payload) {
  payload.hold(bytes.size() % entry_bytes == 0);
  for (std::size_t at = 0; at + entry_bytes <= bytes.size(); at += entry_bytes) {
    const auto number = [&](std::size_t n) { return static_cast<std::int64_t>(fixed_at(bytes, at + 8 * n, 8)); };
    const IndexEntry entry{number(0), number(1), number(2), number(3), number(4), number(5), number(6)};
    payload.hold(entry.logical >= 0 && entry.length >= 0 && entry.length <= INT64_MAX - entry.logical &&
                 entry.physical >= 0 && entry.length <= INT64_MAX - entry.physical);
    entries.push_back(entry);
  }
}

std::optional<IndexedWrites> writes_of(Payload payload, Kind kind) {
  IndexedWrites writes;
  writes.opened = payload.number();
  writes.closed = payload.number();
  writes.physical = payload.number();
  writes.physical_end = payload.number();
  writes.logical_end = payload.number();
  payload.hold(0 <= writes.opened && writes.opened <= writes.closed && 0 <= writes.physical &&
               writes.physical <= writes.physical_end && 0 <= writes.logical_end);
  if (kind == kind_entries) {
    read_entries(payload.rest(), writes.entries, payload);
  } else {
    auto pattern = pattern_from_bytes(payload.rest(), "a frame");
    payload.hold(pattern && pattern->columns == index_columns);
    if (pattern) writes.pattern = *std::move(pattern);
  }
  payload.hold(writes.count() > 0);
  if (!payload.is_sound()) return {};
  return writes;
}

std::optional<IndexMark> mark_of(Payload payload) {
  IndexMark mark;
  const std::int64_t kind = payload.number();
  payload.hold(kind >= 1 && kind <= 3);
  mark.kind = static_cast<IndexMark::Kind>(kind);
  mark.offset = payload.number();
  mark.length = payload.number();
  mark.sequence = payload.number();
  payload.hold(mark.offset >= 0 && mark.length >= 0 && mark.length <= INT64_MAX - mark.offset && mark.sequence >= 0);
  if (!payload.is_sound()) return {};
  return mark;
}

std::optional<IndexLoss> loss_of(Payload payload) {
  IndexLoss loss;
  loss.physical = payload.number();
  loss.length = payload.number();
  const std::int64_t was_unfinished = payload.number();
  payload.hold(was_unfinished == 0 || was_unfinished == 1);
  loss.was_unfinished = was_unfinished == 1;
  payload.hold(loss.physical >= 0 && loss.length >= 0 && loss.length <= INT64_MAX - loss.physical);
  if (!payload.is_sound()) return {};
  return loss;
}

std::optional<IndexSnapshot> snapshot_of(Payload payload, Kind kind, std::string_view source) {
  IndexSnapshot merged;
  payload.hold(payload.number() == frame_version);
  merged.container = payload.text();
  merged.state = payload.fixed();
  for (std::int64_t* number : {&merged.status.size, &merged.status.blocks, &merged.status.modified_unix_ns,
                               &merged.status.accessed_unix_ns, &merged.status.changed_unix_ns})
    *number = payload.number();
  payload.hold(merged.status.size >= 0);
  const auto take = [&](auto read, auto& place) {
    payload.hold(read.has_value());
    if (read) place = *std::move(read);
  };
  if (kind == kind_table) {
    take(PieceTable::read(payload.rest(), source), merged.table);
  } else {
    take(pattern_from_bytes(payload.rest(), source), merged.pattern);
    payload.hold(merged.pattern.columns == index_columns);
  }
  if (!payload.is_sound()) return {};
  return merged;
}

std::optional<ClosedWriter> closed_of(Payload payload) {
  ClosedWriter closed;
  const std::int64_t version = payload.number();
  payload.hold(version == 1 || version == closed_version);
  closed.container = payload.text();
  closed.id = payload.number();
  closed.recorded_unix_ns = payload.number();
  closed.data_bytes = payload.number();
  closed.index_bytes = payload.number();
  const std::int64_t checksum = payload.number(), is_given_up = payload.number();
  if (version == closed_version) {
    closed.data.bytes = payload.number();
    closed.data.block_bytes = payload.number();
    closed.data.packed = payload.bytes();
    payload.hold(closed.data.bytes <= closed.data_bytes && closed.data.is_complete());
  }
  closed.index = payload.rest();
  payload.hold(closed.id >= 0 && closed.data_bytes >= 0 && closed.index_bytes >= 0 && checksum >= 0 &&
               checksum <= UINT32_MAX && (is_given_up == 0 || is_given_up == 1));
  closed.index_checksum = static_cast<std::uint32_t>(checksum);
  closed.is_given_up = is_given_up == 1;
  if (!payload.is_sound()) return {};
  if (std::ssize(closed.index) != closed.index_bytes || crc32c(closed.index) != closed.index_checksum)
    closed.index = {};
  return closed;
}

std::optional<SyncedWriter> synced_of(Payload payload) {
  SyncedWriter synced;
  payload.hold(payload.number() == frame_version);
  synced.container = payload.text();
  synced.id = payload.number();
  synced.data_bytes = payload.number();
  payload.hold(synced.id >= 0 && synced.data_bytes >= 0);
  if (!payload.is_sound()) return {};
  return synced;
}

/// What the checksum of a frame at byte `at` continues: a frame is valid in its own index and place only.
std::uint32_t seed_of(std::int64_t version, std::string_view container, std::int64_t id, std::uint64_t at) {
  if (version == 1) return 0;
  std::array<std::uint8_t, 16> place{};
  for (std::size_t n = 0; n < 8; ++n) {
    place[n] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(id) >> (8 * n));
    place[8 + n] = static_cast<std::uint8_t>(at >> (8 * n));
  }
  return crc32c(place, crc32c({reinterpret_cast<const std::uint8_t*>(container.data()), container.size()}));
}
std::uint32_t seed_of(const IndexHead& head, std::uint64_t at) {
  return seed_of(head.version, head.container, head.id, at);
}

/// Returns the payload of the frame at `at` if its length and checksum are valid.
std::optional<std::span<const std::uint8_t>> payload_at(std::span<const std::uint8_t> bytes, std::size_t at,
                                                        std::uint32_t seed = 0) {
  if (bytes.size() - at < frame_head ||
      !std::equal(frame_magic.begin(), frame_magic.end(), bytes.begin() + static_cast<long>(at)))
    return {};
  const std::uint64_t size = fixed_at(bytes, at + 4, 4);
  if (size == 0 || size > bytes.size() - at - frame_head) return {};
  const auto payload = bytes.subspan(at + frame_head, size);
  if (crc32c(payload, seed) != fixed_at(bytes, at + 8, 4)) return {};
  return payload;
}

/// Whether the bytes are the beginning of a longer frame.
bool is_cut_frame(std::span<const std::uint8_t> bytes) {
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<long>(std::min(bytes.size(), frame_magic.size())),
                  frame_magic.begin()))
    return false;
  return bytes.size() < frame_head || fixed_at(bytes, 4, 4) > bytes.size() - frame_head;
}

/// Returns the offset of the next frame magic after `at`; the end if there is none.
std::size_t next_magic(std::span<const std::uint8_t> bytes, std::size_t at) {
  const auto found =
      std::search(bytes.begin() + static_cast<long>(at) + 1, bytes.end(), frame_magic.begin(), frame_magic.end());
  return static_cast<std::size_t>(found - bytes.begin());
}

struct PlacedHead {
  IndexHead head;
  std::size_t bytes = 0;  ///< of its frame
};

Result<PlacedHead> read_head(std::span<const std::uint8_t> bytes) {
  const auto frame = payload_at(bytes, 0);
  const bool is_head = frame && frame->front() == kind_head;
  const std::int64_t version = is_head ? Payload(frame->subspan(1)).number() : 1;
  if (version < 1 || version > newest_container_version)
    return fail(ErrorKind::bad_input, "byte 0: version {} of the format; this program reads 1 to {}", version,
                newest_container_version);
  auto head = is_head ? head_of(Payload(frame->subspan(1))) : std::nullopt;
  if (!head)
    return fail(ErrorKind::bad_input,
                "byte 0: expected the head of an index dropping; it was cut or changed: what it describes is lost");
  return PlacedHead{.head = {.container = std::string(head->container),
                             .id = head->id,
                             .target = head->target,
                             .host = std::string(head->host),
                             .pid = head->pid,
                             .created_unix_ns = head->created_unix_ns,
                             .version = head->version},
                    .bytes = frame_head + frame->size()};
}

template <class T>
bool append(std::optional<T> read, std::vector<T>& to) {
  if (!read) return false;
  to.push_back(*std::move(read));
  return true;
}

/// Adds what a frame says to `content`. false: it is not a sound frame of a known kind.
bool take_frame(std::span<const std::uint8_t> frame, IndexContent& content) {
  const auto kind = static_cast<Kind>(frame.front());
  const Payload payload(frame.subspan(1));
  switch (kind) {
    case kind_pattern:
    case kind_entries: return append(writes_of(payload, kind), content.writes);
    case kind_loss: return append(loss_of(payload), content.losses);
    case kind_mark:
      if (!append(mark_of(payload), content.marks)) return false;
      for (auto damage = content.damage.rbegin(); damage != content.damage.rend(); ++damage) {
        if (damage->next_sequence != INT64_MAX) break;
        damage->next_sequence = content.marks.back().sequence;
      }
      return true;
    default: return false;
  }
}

/// Records that bytes `at` to `end` are not a valid frame. Neighbouring damage is one.
void note_damage(std::size_t at, std::size_t end, const char* what, IndexContent& content) {
  if (!content.damage.empty() && content.damage.back().at + content.damage.back().bytes == at)
    content.damage.back().bytes += end - at;
  else
    content.damage.push_back({at, end - at, what});
}

}  // namespace

DetectOptions index_detection() {
  DetectOptions options;
  options.columns = index_columns;
  options.follows[physical_offset] = write_length;
  options.unsigned_columns = 2;  // logical offset, length
  return options;
}

std::vector<std::uint8_t> index_frame(const IndexHead& head) {
  Bytes payload{kind_head};
  append_number(head.version, payload);
  append_text(head.container, payload);
  append_number(head.id, payload);
  append_number(head.target, payload);
  append_text(head.host, payload);
  append_number(head.pid, payload);
  append_number(head.created_unix_ns, payload);
  return framed(payload);
}

std::vector<std::uint8_t> index_frame(const IndexedWrites& writes) {
  Bytes payload{writes.entries.empty() ? kind_pattern : kind_entries};
  for (const std::int64_t number :
       {writes.opened, writes.closed, writes.physical, writes.physical_end, writes.logical_end})
    append_number(number, payload);
  if (writes.entries.empty()) {
    const Bytes pattern = pattern_bytes(writes.pattern);
    payload.insert(payload.end(), pattern.begin(), pattern.end());
  }
  for (const IndexEntry& entry : writes.entries) {
    for (const std::int64_t number :
         {entry.logical, entry.length, entry.physical, entry.sequence, entry.begin_ns, entry.end_ns, entry.id})
      append_fixed(static_cast<std::uint64_t>(number), 8, payload);
  }
  return framed(payload);
}

std::vector<std::uint8_t> index_frame(const IndexMark& mark) {
  Bytes payload{kind_mark};
  append_number(static_cast<std::int64_t>(mark.kind), payload);
  append_number(mark.offset, payload);
  append_number(mark.length, payload);
  append_number(mark.sequence, payload);
  return framed(payload);
}

std::vector<std::uint8_t> index_frame(const IndexLoss& loss) {
  Bytes payload{kind_loss};
  append_number(loss.physical, payload);
  append_number(loss.length, payload);
  append_number(loss.was_unfinished ? 1 : 0, payload);
  return framed(payload);
}

std::vector<std::uint8_t> index_frame(const IndexSnapshot& merged) {
  Bytes frame;
  frame.reserve(256);
  frame.resize(frame_head);  // filled in at the end, since a table may be large
  frame.push_back(merged.table ? kind_table : kind_snapshot);
  append_number(frame_version, frame);
  append_text(merged.container, frame);
  append_fixed(merged.state, 8, frame);
  for (const std::int64_t number : {merged.status.size, merged.status.blocks, merged.status.modified_unix_ns,
                                    merged.status.accessed_unix_ns, merged.status.changed_unix_ns})
    append_number(number, frame);
  if (merged.table) {
    merged.table->append_bytes(frame);
  } else {
    const Bytes pieces = pattern_bytes(merged.pattern);
    frame.insert(frame.end(), pieces.begin(), pieces.end());
  }
  std::ranges::copy(head_of_frame(std::span(frame).subspan(frame_head)), frame.begin());
  return frame;
}

std::vector<std::uint8_t> index_frame(const ClosedWriter& closed) {
  Bytes payload{kind_closed};
  append_number(closed_version, payload);
  append_text(closed.container, payload);
  for (const std::int64_t number :
       {closed.id, closed.recorded_unix_ns, closed.data_bytes, closed.index_bytes, std::int64_t{closed.index_checksum},
        std::int64_t{closed.is_given_up}, closed.data.bytes, closed.data.block_bytes})
    append_number(number, payload);
  append_varint(closed.data.packed.size(), payload);
  payload.insert(payload.end(), closed.data.packed.begin(), closed.data.packed.end());
  payload.insert(payload.end(), closed.index.begin(), closed.index.end());
  return framed(payload);
}

std::vector<std::uint8_t> index_frame(const SyncedWriter& synced) {
  Bytes payload{kind_synced};
  append_number(frame_version, payload);
  append_text(synced.container, payload);
  for (const std::int64_t number : {synced.id, synced.data_bytes}) append_number(number, payload);
  return framed(payload);
}

void bind_frame(std::vector<std::uint8_t>& frame, const IndexHead& head, std::int64_t at) {
  const std::uint32_t checksum =
      crc32c(std::span(frame).subspan(frame_head), seed_of(head, static_cast<std::uint64_t>(at)));
  for (std::size_t n = 0; n < 4; ++n) frame[8 + n] = static_cast<std::uint8_t>(checksum >> (8 * n));
}

void append_frame(std::vector<std::uint8_t> frame, const IndexHead& head, std::vector<std::uint8_t>& index) {
  bind_frame(frame, head, std::ssize(index));
  index.insert(index.end(), frame.begin(), frame.end());
}

ClosedWriterRecords read_closed_writers(std::span<const std::uint8_t> bytes) {
  ClosedWriterRecords records;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto payload = payload_at(bytes, at);
    const std::size_t next = payload ? at + frame_head + payload->size() : next_magic(bytes, at);
    const bool is_known =
        payload &&
        ((payload->front() == kind_closed && append(closed_of(Payload(payload->subspan(1))), records.writers)) ||
         (payload->front() == kind_synced && append(synced_of(Payload(payload->subspan(1))), records.synced)));
    if (!is_known) records.damaged_bytes += next - at;
    at = next;
  }
  return records;
}

std::optional<OnlyWrites> read_only_writes(std::span<const std::uint8_t> bytes) {
  const auto frame = payload_at(bytes, 0);
  const auto head = frame && frame->front() == kind_head ? head_of(Payload(frame->subspan(1))) : std::nullopt;
  if (!head) return {};
  const std::size_t at = frame_head + frame->size();
  const auto payload = payload_at(bytes, at, seed_of(head->version, head->container, head->id, at));
  if (!payload || payload->front() != kind_pattern || at + frame_head + payload->size() != bytes.size()) return {};
  auto writes = writes_of(Payload(payload->subspan(1)), kind_pattern);
  if (!writes) return {};
  return OnlyWrites{head->container, head->id, *std::move(writes)};
}

Result<IndexContent> read_index(std::span<const std::uint8_t> bytes) {
  auto head = read_head(bytes);
  if (!head) return pass_on(std::move(head.error()));
  IndexContent content;
  content.head = std::move(head->head);
  for (std::size_t at = head->bytes; at < bytes.size();) {
    const auto payload = payload_at(bytes, at, seed_of(content.head, at));
    const std::size_t next = payload ? at + frame_head + payload->size() : next_magic(bytes, at);
    if (!payload || !take_frame(*payload, content))
      note_damage(at, next, payload ? "a frame of an unknown kind" : "a frame that was cut or changed", content);
    at = next;
  }
  if (!content.damage.empty()) {
    IndexDamage& last = content.damage.back();
    last.is_tail = last.at + last.bytes == bytes.size();
    last.is_cut = last.is_tail && is_cut_frame(bytes.subspan(last.at));
  }
  return content;
}

Result<IndexSnapshot> parse_index_snapshot(std::span<const std::uint8_t> bytes, std::string_view source) {
  const auto found = payload_at(bytes, 0);
  const auto kind = found ? static_cast<Kind>(found->front()) : kind_head;
  if (found && found->size() + frame_head == bytes.size() && (kind == kind_snapshot || kind == kind_table)) {
    auto merged = snapshot_of(Payload(found->subspan(1)), kind, source);
    if (merged) return *std::move(merged);
  }
  return fail(ErrorKind::bad_input,
              "{}: byte 0: expected an index snapshot of version {}, complete and with a valid checksum", source,
              frame_version);
}

}  // namespace iosig
