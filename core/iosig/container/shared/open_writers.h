// The writers of one container in this process: one for each file that a program opened to write, made at the file's
// first write.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "iosig/container/shared/cached_status.h"
#include "iosig/container/shared/failures.h"
#include "iosig/container/write/container_writer.h"

namespace iosig {

/// The writer of one open file, for any of the process's threads.
struct OpenWriter {
  std::mutex mutex;
  std::unique_ptr<ContainerWriter> writer;
  std::size_t kept_fds = 0;  ///< that OpenWriters may keep open
  bool lacks_bytes = false;  ///< the file system has refused writes when the writer was closed
};

/// Writers of a container that were closed since the last sync. It outlives the SharedContainer: a program may write
/// and close a file, and open it again only to sync it.
struct UnsyncedWriters {
  std::mutex mutex;
  std::vector<std::int64_t> ids;
};

/// Safe from any thread. Functions return 0 or an errno unless they say otherwise.
class OpenWriters {
 public:
  OpenWriters(std::shared_ptr<const ContainerDirectory> directory, CachedStatus& status, const FailureLog& log,
              std::shared_ptr<UnsyncedWriters> unsynced)
      : directory_(std::move(directory)), status_(status), log_(log), unsynced_(std::move(unsynced)) {}

  /// Returns a writer for a file that is opened for writing. The caller releases it with remove().
  [[nodiscard]] OpenWriter* add();
  /// Closes the writer. A later sync() still flushes its writes. If it fails, its writes are still there, unless
  /// `lacks_bytes`: the file system has refused some at the close, as network file systems do.
  int remove(OpenWriter* writer, bool* lacks_bytes = nullptr);
  /// Makes the droppings, which otherwise the first write makes.
  int prepare(OpenWriter& writer);
  /// Runs change(ContainerWriter&), which returns Result<void>, while no other change through the same file runs.
  int change(OpenWriter& by, const std::function<Result<void>(ContainerWriter&)>& change);
  /// Writes at `offset`, or at the end of the file if `appends`, which sets `offset`. Returns the bytes written, or
  /// -errno.
  [[nodiscard]] std::int64_t write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes,
                                   bool appends);
  /// Writes the rest of all indices. A file that is written again gets new droppings.
  int close_all();
  /// Makes the writes of all files durable, including files that were closed since the last sync.
  int sync();
  /// close_all() and sync().
  int finish();

 private:
  int open(OpenWriter& writer);
  int close(OpenWriter& writer);
  void keep_fds(OpenWriter& writer);
  std::size_t close_idle_fds();
  int sync_closed(std::int64_t id, Dropping kind);

  const std::shared_ptr<const ContainerDirectory> directory_;
  CachedStatus& status_;
  const FailureLog& log_;
  std::mutex mutex_;  ///< acquired before a writer's own
  std::list<OpenWriter> writers_;
  const std::shared_ptr<UnsyncedWriters> unsynced_;
  FdKeeper keeper_{[this] { return close_idle_fds(); }};  ///< last: it may run until it is destroyed
};

}  // namespace iosig
