#include "iosig/container/read/writer_reader.h"

#include <algorithm>

#include "iosig/base/crc32c.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/tail.h"
#include "iosig/container/read/tail_writes.h"

namespace iosig {
namespace {

constexpr int max_settling_tries = 4;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool begins_as_synced(std::span<const std::uint8_t> index, const SyncedBytes& synced) {
  return std::ssize(index) >= synced.index &&
         crc32c(index.first(static_cast<std::size_t>(synced.index))) == synced.index_checksum;
}

}  // namespace

void FoundWriter::lose(LostWrites writes, std::int64_t bytes) {
  add(ContainerProblem::Kind::lost, writes.id, writes.message, bytes);
  lost_writes.push_back(std::move(writes));
}

void FoundWriter::fail_to_read(std::int64_t id, Error error) {
  if (is_transient(error.system_errno))
    failure = std::move(error);
  else
    lose({.id = id, .message = std::move(error.message)});
}

FoundWriter WriterReader::read(std::int64_t id, bool has_tail) const {
  FoundWriter found = read_once(id, has_tail);
  for (int tries = 1; tries < max_settling_tries && !found.lost_writes.empty(); ++tries) {
    const auto tail = droppings_.status(Dropping::tail, id), index = droppings_.status(Dropping::index, id);
    if (!tail || !index) break;
    if (tail->has_value() == found.had_tail && (*index ? (*index)->st_size : -1) == found.index_bytes) break;
    found = read_once(id, tail->has_value());
  }
  return found;
}

FoundWriter WriterReader::read_once(std::int64_t id, bool has_tail) const {
  FoundWriter found;
  WriterContent writer;
  writer.id = id;
  // The tail first: writes that the writer moves from the tail to the index meanwhile are found in at least one of
  // them. Writes that are found in both are recognised by their physical offsets.
  const auto tail = has_tail ? read_tail(id, found) : std::nullopt;
  const ClosedWriter* const record = trusted(id, has_tail);
  const auto dropping = record != nullptr ? std::nullopt : read_index_dropping(writer, found);
  writer.data_bytes = data_bytes(id, found);
  writer.has_tail = found.had_tail = tail.has_value();
  if (record == nullptr && !dropping) {
    // A writer makes its index before its data, so the index was lost; truncations by this writer are unknown, too.
    if (writer.data_bytes >= 0)
      found.lose({.id = id,
                  .message = fmt::format("'{}': {} bytes of data, but their index is missing",
                                         shown(Dropping::data, id), writer.data_bytes)},
                 writer.data_bytes);
    return found;
  }
  const auto index = record != nullptr ? record->index : bytes_of(*dropping);
  if (!take_index(writer, index, found)) return found;
  if (!writer.marks.empty()) take_time_of_marks(id, found);
  if (tail) add_tail(writer, *tail, index, found);
  compare_with_data(writer, found);
  compare_with_sync_record(writer, found);
  found.writer = std::move(writer);
  return found;
}

/// Returns the record of a closed writer if the caller wants its index rather than the dropping's.
const ClosedWriter* WriterReader::trusted(std::int64_t id, bool has_tail) const {
  if (source_ != ContentSource::records || has_tail) return nullptr;
  const ClosedWriter* const closed = closed_.find(id);
  return closed != nullptr && !closed->is_given_up && !closed->index.empty() ? closed : nullptr;
}

std::optional<std::string> WriterReader::read_tail(std::int64_t id, FoundWriter& found) const {
  auto tail = droppings_.read(Dropping::tail, id);
  if (!tail) found.fail_to_read(id, std::move(tail.error()));
  return tail && *tail ? std::move(*tail) : std::optional<std::string>();
}

/// Reads an index. If it is not what its writer had when it was closed, takes that from the record of the close.
std::optional<std::string> WriterReader::read_index_dropping(WriterContent& writer, FoundWriter& found) const {
  auto read = droppings_.read(Dropping::index, writer.id);
  std::optional<std::string> index;
  if (read && *read) index = *std::move(*read);
  const ClosedWriter* const closed = closed_.find(writer.id);
  const bool is_known = closed != nullptr && !closed->is_given_up && (read || !is_transient(read.error().system_errno));
  const bool is_as_closed = is_known && index && std::ssize(*index) == closed->index_bytes &&
                            crc32c(bytes_of(*index)) == closed->index_checksum;
  if (is_known && !is_as_closed) {
    std::string message = fmt::format("'{}' {}", shown(Dropping::index, writer.id),
                                      index ? "was changed after its writer was closed" : "is missing");
    if (!closed->index.empty()) {
      found.add(ContainerProblem::Kind::damaged, writer.id, message + ": the record of closed writers has it");
      writer.is_restored = true;
      return std::string(closed->index.begin(), closed->index.end());
    }
    found.lose({.id = writer.id, .message = std::move(message)});
  }
  if (!read) found.fail_to_read(writer.id, std::move(read.error()));
  return index;
}

/// An index bears the time of its last mark, as st_mtime. Its other times also change when the writer closes it.
void WriterReader::take_time_of_marks(std::int64_t id, FoundWriter& found) const {
  const auto index = droppings_.status(Dropping::index, id);
  if (!index || !*index) return;
  const std::int64_t marked_unix_ns = unix_ns((*index)->st_mtim);
  found.status.modified_unix_ns = std::max(found.status.modified_unix_ns, marked_unix_ns);
  found.status.changed_unix_ns = std::max(found.status.changed_unix_ns, marked_unix_ns);
}

/// Returns the size of the data dropping; -1 if it does not exist or is not a regular file. It bears the times of
/// writes and reads.
std::int64_t WriterReader::data_bytes(std::int64_t id, FoundWriter& found) const {
  auto status = droppings_.status(Dropping::data, id);
  if (!status) found.fail_to_read(id, std::move(status.error()));
  if (!status || !*status || !S_ISREG((*status)->st_mode)) return -1;
  found.status.blocks = (*status)->st_blocks;
  found.status.accessed_unix_ns = unix_ns((*status)->st_atim);
  found.status.modified_unix_ns = unix_ns((*status)->st_mtim);
  found.status.changed_unix_ns = unix_ns((*status)->st_ctim);
  return (*status)->st_size;
}

/// Takes what the index says. false: nothing, because it is not the index of this writer.
bool WriterReader::take_index(WriterContent& writer, std::span<const std::uint8_t> index, FoundWriter& found) const {
  const std::int64_t id = writer.id;
  writer.index_bytes = found.index_bytes = std::ssize(index);
  auto read = read_index(index);
  if (!read) {
    std::string message = fmt::format("{}: {}", printable(shown(Dropping::index, id)), read.error().message);
    // A writer makes the head of the index before the data. If there are no data, it died before its first write.
    if (writer.data_bytes >= 0)
      found.lose({.id = id, .message = std::move(message)}, writer.data_bytes);
    else
      found.add(ContainerProblem::Kind::unsynced, id, std::move(message));
    return false;
  }
  if (read->head.container != droppings_.directory().manifest().id || read->head.id != id) {
    note_foreign(writer, read->head, found);
    return false;
  }
  static_cast<IndexContent&>(writer) = *std::move(read);
  for (const IndexDamage& damage : writer.damage) {
    std::string message =
        fmt::format("'{}': byte {}: {}, {} bytes", shown(Dropping::index, id), damage.at, damage.what, damage.bytes);
    // The tail describes the last writes of a writer that died. A writer that closed its file has no tail.
    if (damage.is_cut && writer.has_tail)
      found.add(ContainerProblem::Kind::unsynced, id, std::move(message));
    else
      found.lose({id, damage.next_sequence, std::move(message)});
  }
  return true;
}

/// Records that the index is that of another writer or container.
void WriterReader::note_foreign(const WriterContent& writer, const IndexHead& head, FoundWriter& found) const {
  const std::string name = shown(Dropping::index, writer.id);
  const bool is_copy = head.container == droppings_.directory().manifest().id;
  std::string message = is_copy ? fmt::format("'{}' is the index of writer {}: a copy, or renamed", name, head.id)
                                : fmt::format("'{}' is the index of another container", name);
  // The data may be a copy, too. If they are not, the index of these data has been replaced.
  if (writer.data_bytes >= 0 && !(is_copy && droppings_.have_same_data(writer.id, head.id)))
    found.lost_writes.push_back({.id = writer.id, .message = message});
  found.add(ContainerProblem::Kind::foreign, writer.id, std::move(message),
            std::max<std::int64_t>(0, writer.data_bytes));
}

/// Adds the writes in the tail. If the writer is dead, reports what is lost of them, and of what it had synced.
void WriterReader::add_tail(WriterContent& writer, std::string_view tail, std::span<const std::uint8_t> index,
                            FoundWriter& found) const {
  const std::int64_t id = writer.id, known = writer.physical_end();
  const auto bytes = bytes_of(tail);
  const std::uint64_t identity = tail_identity(droppings_.directory().manifest().id, id);
  const bool is_foreign = is_foreign_tail(bytes, identity, known, writer.data_bytes);
  if (!is_foreign) {
    IndexedWrites writes = writes_in_tail(iosig::read_tail(bytes), known, std::max<std::int64_t>(writer.data_bytes, 0));
    writer.tail_writes = writes.count();
    if (writer.tail_writes > 0) writer.writes.push_back(std::move(writes));
    writer.synced = synced_bytes(bytes);
  }
  const bool has_lost_tail = is_foreign || has_lost_records(bytes, known, writer.data_bytes) ||
                             (writer.synced && writer.physical_end() < writer.synced->data);
  // Damaged frames have been reported one by one; not a cut one at the end, which seems to be unfinished.
  const bool has_lost_index = writer.synced && found.lost_writes.empty() && !begins_as_synced(index, *writer.synced);
  const bool has_changed_head = !is_foreign && has_changed_synced_bytes(bytes);
  if (!has_lost_tail && !has_lost_index && !has_changed_head) return;
  // An active writer may have been updating the records while they were read; then nothing is lost.
  if (is_active(id, found).value_or(true)) return;
  if (has_lost_tail)
    found.lose({.id = id,
                .message = fmt::format("'{}': records were cut or changed: what they describe is lost",
                                       shown(Dropping::tail, id))});
  if (has_changed_head)
    found.add(ContainerProblem::Kind::damaged, id,
              fmt::format("'{}': its head was changed: what its writer had synced cannot be verified",
                          shown(Dropping::tail, id)));
  if (has_lost_index)
    found.lose(
        {.id = id,
         .message = fmt::format("'{}' was cut or changed after its writer had synced it: what it described is lost",
                                shown(Dropping::index, id))});
}

/// Names the parts of the data that no frame describes.
void WriterReader::compare_with_data(const WriterContent& writer, FoundWriter& found) const {
  const std::int64_t id = writer.id;
  for (const IndexLoss& loss : writer.losses)
    found.add(loss.was_unfinished ? ContainerProblem::Kind::unsynced : ContainerProblem::Kind::lost, id,
              fmt::format("'{}': bytes {} to {} were given up by repair: {}", shown(Dropping::data, id), loss.physical,
                          loss.physical + loss.length,
                          loss.was_unfinished ? "from writes that had not ended, or had not been synced"
                                              : "their index is lost"),
              loss.length);
  for (const IndexLoss& part : writer.unindexed()) {
    const std::string range =
        fmt::format("'{}': bytes {} to {} have", shown(Dropping::data, id), part.physical, part.physical + part.length);
    if (part.was_unfinished) {
      found.add(ContainerProblem::Kind::unsynced, id, range + " no index: from an unfinished write", part.length);
      found.has_write_in_progress = is_active(id, found).value_or(true);
    } else {
      found.lose({.id = id, .message = range + " lost their index"}, part.length);
    }
  }
}

/// Reports data of a dead writer that were durable, but which neither its index nor its tail describes.
void WriterReader::compare_with_sync_record(const WriterContent& writer, FoundWriter& found) const {
  const SyncedWriter* const synced = closed_.find_synced(writer.id);
  const bool is_named = !found.lost_writes.empty() || !writer.losses.empty();
  if (synced == nullptr || writer.physical_end() >= synced->data_bytes || is_named) return;
  if (is_active(writer.id, found).value_or(false)) return;
  found.lose(
      {.id = writer.id,
       .message = fmt::format("'{}': its writer had synced {} bytes, of which {} are described: the rest is lost",
                              shown(Dropping::index, writer.id), synced->data_bytes, writer.physical_end())},
      synced->data_bytes - writer.physical_end());
}

FoundWriter WriterReader::read_gone(const SyncedWriter& synced) const {
  FoundWriter found;
  const auto index = droppings_.status(Dropping::index, synced.id);
  if (!index) found.fail_to_read(synced.id, index.error());
  if (!index || *index || is_active(synced.id, found).value_or(false) || found.failure) return found;
  found.lose({.id = synced.id,
              .message = fmt::format("'{}' is missing: its writer had synced {} bytes",
                                     shown(Dropping::index, synced.id), synced.data_bytes)},
             synced.data_bytes);
  return found;
}

FoundWriter WriterReader::read_tail_alone(std::int64_t id) const {
  FoundWriter found;
  const auto tail = read_tail(id, found);
  if (!tail || found.failure) return found;
  const auto bytes = bytes_of(*tail);
  const auto synced = synced_bytes(bytes);
  if (iosig::read_tail(bytes).empty() && !synced) return found;
  if (is_foreign_tail(bytes, tail_identity(droppings_.directory().manifest().id, id), 0, 0)) return found;
  if (is_active(id, found).value_or(true)) return found;
  found.lose(
      {.id = id,
       .message = fmt::format("'{}': the index and the data of its writer are missing", shown(Dropping::tail, id))},
      synced ? synced->data : 0);
  return found;
}

/// Whether the writer of a tail is alive; nothing if it has none any more, or that cannot be found out.
std::optional<bool> WriterReader::is_active(std::int64_t id, FoundWriter& found) const {
  auto tail = droppings_.open(Dropping::tail, id);
  if (!tail) found.fail_to_read(id, std::move(tail.error()));
  return tail && *tail ? std::optional(is_alive(**tail)) : std::nullopt;
}

}  // namespace iosig
