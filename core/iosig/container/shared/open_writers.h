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

#include "iosig/container/shared/cached_status.h"
#include "iosig/container/shared/failures.h"
#include "iosig/container/write/container_writer.h"

namespace iosig {

/// The writes through one open file, by any of its threads.
struct OpenWriter {
  std::mutex mutex;
  std::unique_ptr<ContainerWriter> writer;
};

/// Safe from any thread. Functions return 0 or an errno unless they say otherwise.
class OpenWriters {
 public:
  OpenWriters(std::shared_ptr<const ContainerDirectory> directory, CachedStatus& status, const FailureLog& log)
      : directory_(std::move(directory)), status_(status), log_(log) {}

  /// One for each file that is opened to write. The caller gives it back by remove().
  [[nodiscard]] OpenWriter* add();
  /// Closes it. sync() covers its writes all the same.
  int remove(OpenWriter* writer);
  /// Makes the droppings, which the first write does otherwise.
  int prepare(OpenWriter& writer);
  /// Runs change(ContainerWriter&), which returns Result<void>, without other changes by the same file beside it.
  int change(OpenWriter& by, const std::function<Result<void>(ContainerWriter&)>& change);
  /// Writes at `offset`, or at the end of the file if `appends`, which sets `offset`. Returns the bytes written, or
  /// -errno.
  [[nodiscard]] std::int64_t write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes,
                                   bool appends);
  /// Puts all writes into the indices; a file that is written again gets new droppings.
  int close_all();
  /// Makes the writes of all files durable, of those closed since the last sync, too.
  int sync();
  /// close_all() and sync().
  int finish();

 private:
  int open(OpenWriter& writer);
  int close(OpenWriter& writer);
  int sync_closed(std::int64_t id, Dropping kind);

  const std::shared_ptr<const ContainerDirectory> directory_;
  CachedStatus& status_;
  const FailureLog& log_;
  std::mutex mutex_;  ///< acquired before a writer's own
  std::list<OpenWriter> writers_;
  std::vector<std::int64_t> unsynced_;  ///< writers that were closed since the last sync
};

}  // namespace iosig
