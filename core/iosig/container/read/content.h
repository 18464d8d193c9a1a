// The content of all droppings of a container, read and checked against each other. Views and `iosig container check`
// are built on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/layout/tail.h"

namespace iosig {

/// A defect of a container. Lost bytes stay lost; everything else can be read.
struct ContainerProblem {
  enum class Kind {
    lost,      ///< written bytes cannot be read: a dropping is missing, truncated or changed
    damaged,   ///< an index is missing, truncated or changed, but the record of its closed writer has it: nothing is
               ///< lost
    unsynced,  ///< data without an index, or an unfinished frame, of a writer that died during a write
    absent,    ///< a writer has no droppings: it failed to create them, or all were deleted
    foreign,   ///< files that do not belong there: foreign names, duplicates, droppings of another container
  };
  Kind kind = Kind::lost;
  std::int64_t id = -1;    ///< the writer; -1: none
  std::string message;     ///< names the file
  std::int64_t bytes = 0;  ///< size of the affected data, if known
};

/// The index of one writer, with its tail's writes as the last element of `writes`, and the state of its droppings.
struct WriterContent : IndexContent {
  std::int64_t id = 0;
  std::int64_t data_bytes = -1;       ///< size of the data dropping; -1: there is none
  std::int64_t index_bytes = 0;       ///< size of the index dropping
  bool has_tail = false;              ///< its writer is active, or died
  std::uint64_t tail_writes = 0;      ///< writes that are only in the tail
  std::optional<SyncedBytes> synced;  ///< what a writer with a tail has synced
  bool is_restored = false;  ///< the index is that of the record of closed writers (container/layout/closed_writers)

  /// Returns how many bytes of the data its writer had certainly synced: by its tail or by the record of the sync,
  /// `recorded`, which may be null.
  [[nodiscard]] std::int64_t synced_data(const SyncedWriter* recorded) const;
  /// Returns the size that the data dropping has according to the index and the tail.
  [[nodiscard]] std::int64_t physical_end() const { return writes.empty() ? 0 : writes.back().physical_end; }
  /// Returns the parts of the data, in order, that no frame describes and repair has not given up. The last one, behind
  /// all frames, belongs to an unfinished write if there is a tail.
  [[nodiscard]] std::vector<IndexLoss> unindexed() const;
};

/// Writes and marks of one writer that no index describes any more. They may have changed any byte of the file.
struct LostWrites {
  std::int64_t id = 0;                ///< the writer
  std::int64_t sequence = INT64_MAX;  ///< upper bound of their sequence numbers
  std::string message;                ///< names the dropping that should describe them
};

struct ContainerContent {
  std::vector<WriterContent> writers;  ///< by id
  std::vector<ContainerProblem> problems;
  std::vector<LostWrites> lost_writes;  ///< each is also in `problems`
  ContainerStatus status;               ///< of the droppings: blocks, latest times; the size is not set
  std::int64_t last_recorded_id = -1;   ///< the greatest id in the record of closed writers
  /// A writer that is alive had written data, but not yet recorded where they belong. A later call may find more,
  /// although no dropping has grown.
  bool has_write_in_progress = false;

  /// Returns the size of the logical file, from the order of writes and marks.
  [[nodiscard]] std::int64_t size() const;
  /// Returns the greatest number that the write of the byte at `physical` in the data of writer `id` can have
  /// (INT64_MAX: unknown); for `id` -1 that of any mark.
  [[nodiscard]] std::int64_t last_sequence_at(std::int64_t id, std::int64_t physical) const;
  /// Returns the greatest sequence number in use; 0: none.
  [[nodiscard]] std::int64_t last_sequence() const;

  /// Returns lost writes that may have overwritten the bytes that are read from `physical` in the data of writer `id`
  /// (-1: from a hole), or nullptr if there are none. Takes the least number in the frame for the write's number.
  [[nodiscard]] const LostWrites* lost_over(std::int64_t id, std::int64_t physical) const;
  /// Returns how many of the `length` bytes from `physical` the data dropping of writer `id` holds.
  [[nodiscard]] std::int64_t bytes_there(std::int64_t id, std::int64_t physical, std::int64_t length) const;
  /// Returns lost writes that may have changed the file's size, or nullptr.
  [[nodiscard]] const LostWrites* lost_at_end() const;
};

/// Where the index of a closed writer is read.
enum class ContentSource {
  droppings,  ///< in its dropping, which is compared with the record of the close: finds damaged indices
  records,    ///< in the record if that has a copy, without a look at the dropping: the same content, much sooner
};

/// Reads the content of a container. The index of a closed writer that is missing or not as its record says is replaced
/// by the record's. A dropping that cannot be read is a problem, not a failure. Fails if the process has no free
/// descriptor or memory, or a call was interrupted: what could not be read may be sound. Writes during the call may be
/// in the content.
/// `listing`: a listing of the container that the caller has just made.
[[nodiscard]] Result<ContainerContent> read_content(const ContainerDirectory& directory,
                                                    ContentSource source = ContentSource::droppings,
                                                    std::optional<ContainerDirectory::Listing> listing = std::nullopt);

}  // namespace iosig
