// A container that one process has open, for all its threads: its writers, one view for all its readers, and its
// status. Its functions behave like the system calls on an ordinary file. The mount, the preloaded library and the C
// interface are built on it.
//
//   program's call        part
//   write, fsync, close   OpenWriters    droppings of this process; reports every change to the status
//   read, lseek           CachedView     the merged index; asks the status whether it is out of date
//   stat                  CachedStatus   size, times, and which bytes changed since the index was read
//   chmod, chown, utimes  attributes     of all files in the container
//
// This file has the calls that need more than one part.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "iosig/container/shared/attributes.h"
#include "iosig/container/shared/cached_status.h"
#include "iosig/container/shared/cached_view.h"
#include "iosig/container/shared/failures.h"
#include "iosig/container/shared/open_writers.h"

namespace iosig {

/// Safe from any thread. Functions return 0 or an errno; messages go to the log.
class SharedContainer {
 public:
  /// Opens the container whose directory is open as `directory`; O_PATH suffices. `fill` writes the zeros of holes.
  /// `unsynced`: of the process's earlier SharedContainer for it, if the caller keeps that.
  static Result<std::shared_ptr<SharedContainer>> open(
      int directory, SayFailure say, FillHole fill = fill_with_zeros,
      std::shared_ptr<UnsyncedWriters> unsynced = std::make_shared<UnsyncedWriters>());

  [[nodiscard]] OpenWriters& writers() { return writers_; }
  [[nodiscard]] CachedView& view() { return view_; }
  [[nodiscard]] CachedStatus& status() { return status_; }

  /// **Discards the bytes behind `size`**, or extends the file. `by` null: uses a temporary writer. Fails with EFBIG if
  /// the file would grow beyond RLIMIT_FSIZE; the caller raises the signal.
  int truncate(OpenWriter* by, std::int64_t size);
  /// fallocate(2). Punching holes, zeroing and growing are supported.
  int allocate(OpenWriter& by, int mode, std::int64_t offset, std::int64_t length);
  int set_times(const timespec times[2]);
  int set_mode(unsigned mode);
  int set_owner(uid_t user, gid_t group);

  /// If other nodes have the container open for writing: checks for their changes. Changes on this node need no check.
  int refresh_from_other_nodes();
  /// For a lock that orders the accesses of several nodes. If others have the container open for writing: makes the
  /// writes of this process visible to them, checks for theirs, and orders later writes of this process after them.
  int exchange_with_other_nodes();

 private:
  SharedContainer(std::shared_ptr<const ContainerDirectory> directory, SayFailure say, FillHole fill,
                  std::shared_ptr<UnsyncedWriters> unsynced);
  int empty();
  int find_other_nodes();
  void touch();

  const std::shared_ptr<const ContainerDirectory> directory_;
  const FailureLog log_;
  CachedStatus status_;
  CachedView view_;
  OpenWriters writers_;
  std::mutex nodes_mutex_;
  OtherNodes other_nodes_;
};

}  // namespace iosig
