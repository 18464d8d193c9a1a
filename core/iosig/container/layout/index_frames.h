// The index dropping of a container <-> bytes: a head, then frames that are only ever appended. The format is
// docs/formats/container.md.
//
// Pure: bytes in, bytes out. Every frame carries its checksum, so one that was half written, or changed, is told from
// those around it, which stay readable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/pattern.h"

namespace iosig {

/// Whose index it is.
struct IndexHead {
  std::string container;     ///< ContainerManifest::id
  std::int64_t id = 0;       ///< of the writer, as in the names of its droppings
  std::int64_t target = -1;  ///< in ContainerManifest::targets, where the data are; -1: in the container
  std::string host;
  std::int64_t pid = 0;
  std::int64_t created_unix_ns = 0;

  bool operator==(const IndexHead&) const = default;
};

/// One write as PLFS 2.x keeps it: 56 bytes.
struct IndexEntry {
  std::int64_t logical = 0, length = 0, physical = 0, sequence = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< CLOCK_REALTIME
  std::int64_t id = 0;

  bool operator==(const IndexEntry&) const = default;
};

/// Of the pattern in a frame: the physical offset follows the length.
enum IndexColumn : std::uint8_t { logical_offset, write_length, physical_offset, write_sequence, index_columns };

/// Writes of one writer in their order, either as a pattern (index_columns) or as entries.
struct IndexedWrites {
  std::int64_t opened = 0, closed = 0;          ///< the least and the greatest sequence number
  std::int64_t physical = 0, physical_end = 0;  ///< what they hold of the data dropping
  std::int64_t logical_end = 0;                 ///< the greatest
  Pattern pattern;
  std::vector<IndexEntry> entries;

  [[nodiscard]] std::uint64_t count() const { return pattern.count() + entries.size(); }
  bool operator==(const IndexedWrites&) const = default;
};

/// A change of the file that writes no bytes, with its place in the order of all writes.
struct IndexMark {
  enum class Kind : std::uint8_t {
    truncate = 1,  ///< the file ends at `offset`; what was behind it is gone
    extend = 2,    ///< the file ends at `offset` at least
    punch = 3,     ///< `length` bytes from `offset` on are a hole
  };
  Kind kind = Kind::truncate;
  std::int64_t offset = 0, length = 0, sequence = 0;

  bool operator==(const IndexMark&) const = default;
};

/// What `iosig container repair` gave up: bytes of the data dropping that no frame tells of any more, so that they are
/// in no place of the file. None: the frame that was lost told of no bytes that are known.
struct IndexLoss {
  std::int64_t physical = 0, length = 0;
  bool was_unfinished = false;  ///< they are of a write that did not end when its writer died

  bool operator==(const IndexLoss&) const = default;
};

/// What stat(2) says of a logical file, but for its mode.
struct ContainerStatus {
  std::int64_t size = 0;
  std::int64_t blocks = 0;  ///< of 512 bytes, that the data droppings take
  std::int64_t modified_unix_ns = 0, accessed_unix_ns = 0, changed_unix_ns = 0;

  bool operator==(const ContainerStatus&) const = default;
};

/// The indices of all writers as one, and the file's status then: what one reader makes for all.
struct IndexSnapshot {
  std::string container;    ///< ContainerManifest::id
  std::uint64_t state = 0;  ///< of the container when it was made, as its keeper tells states from each other
  ContainerStatus status;
  Pattern pattern;  ///< logical offset, length, physical offset, id

  bool operator==(const IndexSnapshot&) const = default;
};

[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexHead& head);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexedWrites& writes);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexMark& mark);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexLoss& loss);
[[nodiscard]] std::vector<std::uint8_t> index_frame(const IndexSnapshot& merged);

/// Bytes of an index dropping that are no sound frame.
struct IndexDamage {
  std::uint64_t at = 0, bytes = 0;
  std::string what;
  bool is_tail = false;  ///< nothing sound follows
  bool is_cut = false;   ///< it begins as a frame does, which the bytes end before: its writer died as it wrote it
  /// The number of the next mark, INT64_MAX if there is none: nothing that stood there has a greater one. A frame of
  /// writes bounds nothing: it comes when it is full, and a mark that stands before it at once.
  std::int64_t next_sequence = INT64_MAX;
};

struct IndexContent {
  IndexHead head;
  std::vector<IndexedWrites> writes;  ///< in their order
  std::vector<IndexMark> marks;
  std::vector<IndexLoss> losses;
  std::vector<IndexDamage> damage;
};

/// Every sound frame. Fails with `bad_input`, "source: byte N: ...", when the head is not sound or of another version:
/// then nobody knows whose it is. Takes memory by the size of the bytes, whatever they declare.
[[nodiscard]] Result<IndexContent> read_index(std::span<const std::uint8_t> bytes, std::string_view source);

/// Of one frame and nothing else. Fails with `bad_input` otherwise.
[[nodiscard]] Result<IndexSnapshot> parse_index_snapshot(std::span<const std::uint8_t> bytes, std::string_view source);

}  // namespace iosig
