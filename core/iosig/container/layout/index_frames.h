// Converts the index dropping of a container to bytes and back: a head, then frames that are only ever appended. The
// format is docs/formats/container.md.
//
// Pure: bytes in, bytes out. Every frame carries its own checksum, so the reader detects a torn or corrupted frame and
// still reads the others. From version 2 on, the checksum also depends on the container, the writer and the frame's
// place in the index, so that a frame that was repeated, moved or taken from another index is a corrupted one, too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/piece_table.h"
#include "iosig/base/result.h"
#include "iosig/container/layout/container_manifest.h"
#include "iosig/container/layout/data_checksums.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Identifies the writer of an index dropping.
struct IndexHead {
  std::string container;  ///< ContainerManifest::id
  std::int64_t id = 0;    ///< the writer's id, as in the names of its droppings
  /// Position in ContainerManifest::targets of the directory with the data; -1: the container.
  std::int64_t target = -1;
  std::string host;
  std::int64_t pid = 0;
  std::int64_t created_unix_ns = 0;
  std::int64_t version = newest_container_version;  ///< of the index, as in ContainerManifest

  bool operator==(const IndexHead&) const = default;
};

/// One write as PLFS 2.x stores it: 56 bytes.
struct IndexEntry {
  std::int64_t logical = 0, length = 0, physical = 0, sequence = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< CLOCK_REALTIME
  std::int64_t id = 0;

  bool operator==(const IndexEntry&) const = default;
};

/// The columns of the pattern in a frame. The physical offset is the running sum of the lengths.
enum IndexColumn : std::uint8_t { logical_offset, write_length, physical_offset, write_sequence, index_columns };

/// How a pattern of these columns is detected.
[[nodiscard]] DetectOptions index_detection();

/// Writes of one writer in order, either as a pattern (index_columns) or as entries.
struct IndexedWrites {
  std::int64_t opened = 0, closed = 0;          ///< the smallest and the greatest sequence number
  std::int64_t physical = 0, physical_end = 0;  ///< their range in the data dropping
  std::int64_t logical_end = 0;                 ///< the greatest end of a write
  Pattern pattern;
  std::vector<IndexEntry> entries;

  [[nodiscard]] std::uint64_t count() const { return pattern.count() + entries.size(); }
  bool operator==(const IndexedWrites&) const = default;
};

/// A change of the file that writes no bytes. Its sequence number orders it among the writes.
struct IndexMark {
  enum class Kind : std::uint8_t {
    truncate = 1,  ///< the file ends at `offset`; the bytes behind it are discarded
    extend = 2,    ///< the file ends at `offset` or later
    punch = 3,     ///< `length` bytes from `offset` become a hole
  };
  Kind kind = Kind::truncate;
  std::int64_t offset = 0, length = 0, sequence = 0;

  bool operator==(const IndexMark&) const = default;
};

/// Bytes that `iosig container repair` gave up: no frame describes them any more, so they belong to no part of the
/// file. `length` 0: a frame was lost that described no known bytes.
struct IndexLoss {
  std::int64_t physical = 0, length = 0;
  /// Of a write that was in progress when its writer died, or of writes that had not been synced and have no data.
  bool was_unfinished = false;

  bool operator==(const IndexLoss&) const = default;
};

/// The stat(2) fields of a logical file, except its mode.
struct ContainerStatus {
  std::int64_t size = 0;
  std::int64_t blocks = 0;  ///< allocated by the data droppings, in units of 512 bytes
  std::int64_t modified_unix_ns = 0, accessed_unix_ns = 0, changed_unix_ns = 0;

  bool operator==(const ContainerStatus&) const = default;
};

/// The indices of all writers merged into one, with the file's status at that time. One reader saves it for all others.
struct IndexSnapshot {
  std::string container;    ///< ContainerManifest::id
  std::uint64_t state = 0;  ///< identifies the state of the container that was merged
  ContainerStatus status;
  Pattern pattern;                    ///< logical offset, length, physical offset, id
  std::optional<PieceTable> table{};  ///< instead of a pattern, where the writes have none

  bool operator==(const IndexSnapshot&) const = default;
};

/// The record of a closed writer. It shows whether the droppings were damaged later, and holds a copy of the index. The
/// spans refer to the bytes that the record was read from.
struct ClosedWriter {
  std::string_view container{};  ///< ContainerManifest::id
  std::int64_t id = 0;           ///< the writer
  std::int64_t recorded_unix_ns = 0;
  std::int64_t data_bytes = 0;            ///< size of the data dropping
  std::int64_t index_bytes = 0;           ///< size of the index dropping
  std::uint32_t index_checksum = 0;       ///< CRC-32C of the index dropping
  bool is_given_up = false;               ///< repair has quarantined the droppings: the writer wrote nothing any more
  DataChecksums data{};                   ///< none in records of version 1
  std::span<const std::uint8_t> index{};  ///< the index dropping; empty if it was too large
};

/// The record of a writer that has synced. While the writer has no record of its close, this is the only place outside
/// its droppings that tells of it.
struct SyncedWriter {
  std::string_view container{};  ///< ContainerManifest::id
  std::int64_t id = 0;           ///< the writer
  std::int64_t data_bytes = 0;   ///< data that were durable: its index and tail describe at least these
};

/// Each returns a frame. The frames of an index, except its head, must be bound to their place.
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexHead& head);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexedWrites& writes);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexMark& mark);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexLoss& loss);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexSnapshot& merged);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const ClosedWriter& closed);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const SyncedWriter& synced);

/// Sets the checksum of a frame that will begin at byte `at` of the index with this head. May be called again.
void bind_frame(std::vector<std::uint8_t>& frame, const IndexHead& head, std::int64_t at);
/// Binds a frame to the end of an index, and appends it.
void append_frame(std::vector<std::uint8_t> frame, const IndexHead& head, std::vector<std::uint8_t>& index);

/// Bytes of an index dropping that are not a valid frame.
struct IndexDamage {
  std::uint64_t at = 0, bytes = 0;
  std::string what;
  bool is_tail = false;  ///< no valid frame follows
  bool is_cut = false;   ///< a frame that the end of the file cuts short: its writer died while writing it
  /// The sequence number of the next mark; INT64_MAX if there is none. No lost frame has a greater number. A frame of
  /// writes is no such bound: it is appended when it is full, whereas a mark is appended at once.
  std::int64_t next_sequence = INT64_MAX;
};

struct IndexContent {
  IndexHead head;
  std::vector<IndexedWrites> writes;  ///< in their order
  std::vector<IndexMark> marks;
  std::vector<IndexLoss> losses;
  std::vector<IndexDamage> damage;
};

/// Returns every valid frame. Fails with `bad_input`, "byte 0: ...", when the head is invalid or of another version,
/// because the writer is then unknown. Allocates memory in proportion to the input, whatever lengths it declares.
[[nodiscard]] Result<IndexContent> read_index(std::span<const std::uint8_t> bytes);

/// Writes that are all that an index describes.
struct OnlyWrites {
  std::string_view container;  ///< refers to the bytes
  std::int64_t id = 0;
  IndexedWrites writes;
};
/// Returns what read_index() finds in an index of a head and one frame of writes as a pattern, in less time. Nothing
/// for other indices.
[[nodiscard]] std::optional<OnlyWrites> read_only_writes(std::span<const std::uint8_t> bytes);

/// The records of one file, in their order.
struct ClosedWriterRecords {
  std::vector<ClosedWriter> writers;
  std::vector<SyncedWriter> synced;
  std::uint64_t damaged_bytes = 0;  ///< that are not part of a valid record
};
/// Returns the valid records in `bytes`. A record whose index does not match its checksum has none.
[[nodiscard]] ClosedWriterRecords read_closed_writers(std::span<const std::uint8_t> bytes);

/// Reads exactly one frame. Fails with `bad_input` for anything else.
[[nodiscard]] Result<IndexSnapshot> parse_index_snapshot(std::span<const std::uint8_t> bytes, std::string_view source);

}  // namespace iosig
