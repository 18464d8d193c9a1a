// The records that writers leave when they are closed: `closed.<16 hexadecimal digits>` in the container, one file for
// each node since it was booted, to which every closed writer of the node appends one frame.
//
// A writer that syncs is recorded before its first sync returns, too. If it is killed and all its droppings are lost,
// this record tells that something is missing.
//
// A record has the size of the writer's data dropping and its checksums, the size and checksum of its index dropping,
// and a copy of it.
// So readers know the set of closed writers in a second place, notice that an index was lost, cut, extended or replaced
// by another, and read the copy then. Repair restores the index from it.
//
// The records are a replica: a program never fails because its writer could not be recorded.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {

/// All records of a container. The record of a close replaces that of a sync.
class ClosedWriters {
 public:
  /// `names`: the container's files of records. Skips what is damaged or cannot be read. Fails if the call may succeed
  /// when it is made again: no free descriptor, no memory.
  static Result<ClosedWriters> read(const ContainerDirectory& directory, const std::vector<std::string>& names);

  /// Returns the last record of a writer, or nullptr. It lives as long as this object.
  [[nodiscard]] const ClosedWriter* find(std::int64_t id) const;
  /// Returns the writers that have a record and were not given up, sorted.
  [[nodiscard]] std::vector<std::int64_t> ids() const;
  /// Returns the writers that repair gave up, by id.
  [[nodiscard]] std::vector<ClosedWriter> given_up() const;
  /// Returns the writers that have synced and have no record of their close, by id, each once.
  [[nodiscard]] const std::vector<SyncedWriter>& synced() const { return synced_; }
  /// Returns that of a writer, or nullptr. It lives as long as this object.
  [[nodiscard]] const SyncedWriter* find_synced(std::int64_t id) const;
  /// Returns the greatest id that has a record; -1: none.
  [[nodiscard]] std::int64_t last_id() const {
    return std::max(last_.empty() ? -1 : last_.back().id, synced_.empty() ? -1 : synced_.back().id);
  }
  /// Returns the names of the files that hold anything but valid records of this container.
  [[nodiscard]] const std::vector<std::string>& damaged() const { return damaged_; }
  /// Changes with every change of the files.
  [[nodiscard]] std::uint64_t state() const { return state_; }

 private:
  void keep_last_records();

  std::vector<std::string> files_;  ///< which the records refer to
  std::vector<ClosedWriter> last_;  ///< the last record of each writer, by id
  std::vector<SyncedWriter> synced_;
  std::vector<std::string> damaged_;
  std::uint64_t state_ = 0;
};

/// Appends the record of a writer whose droppings will not change any more. Does nothing if that is impossible.
/// `closed.index` is the whole index; if it is empty, the index is read from its dropping, whose first bytes must have
/// the size and the checksum. If they have not, or are too many, the record has no copy. `former`: the record that this
/// one replaces, which another node may have made. Returns the size of this node's file of records.
std::int64_t record_closed_writer(const ContainerDirectory& directory, ClosedWriter closed,
                                  const ClosedWriter* former = nullptr);
/// Records that repair has quarantined the droppings of a writer, or has found none. `lost_bytes`: data that were
/// missing.
void record_given_up_writer(const ContainerDirectory& directory, std::int64_t id, std::int64_t lost_bytes,
                            const ClosedWriter* former);

/// The record of one writer's syncs. A replica as well: no failure is the program's.
///
/// A truncation to 0 deletes records. A writer that goes on after it is recorded again by its next sync.
class SyncRecord {
 public:
  /// Whether this node's file of records has it.
  [[nodiscard]] bool is_there(const ContainerDirectory& directory);
  /// Opens this node's file of records; creates it. Invalid: impossible. The name of a new file is durable after the
  /// caller has flushed the container's directory.
  [[nodiscard]] static Fd open_file(const ContainerDirectory& directory);
  /// Appends the record to `file` and flushes it. **All that `synced` says must be durable.**
  void append(const ContainerDirectory& directory, const Fd& file, SyncedWriter synced);

 private:
  std::vector<std::uint8_t> frame_;  ///< empty: there is none
  std::int64_t at_ = 0;              ///< its place
  struct stat file_ {};              ///< the file when it last was known to have the record
};

/// **Deletes the records** of the writers with smaller ids than `first_kept`, whose data are void, and those that other
/// writers append at the same moment.
void remove_closed_writers(const ContainerDirectory& directory, std::int64_t first_kept);

}  // namespace iosig
