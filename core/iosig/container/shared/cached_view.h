// One view of a container for all threads of a process that read it. The index is read again only when bytes that a
// reader asks for may have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "iosig/container/read/container_view.h"
#include "iosig/container/read/follower.h"
#include "iosig/container/shared/cached_status.h"
#include "iosig/container/shared/failures.h"

namespace iosig {

/// How a read of a range treats lost bytes in it.
enum class IfLost {
  fail,  ///< it fails with EIO
  stop,  ///< it returns the bytes before the first lost one, as read(2) does on a damaged device; EIO if there are none
};

/// Safe from any thread.
class CachedView {
 public:
  /// `fill` writes the zeros of holes.
  CachedView(std::shared_ptr<const ContainerDirectory> directory, CachedStatus& status, const FailureLog& log,
             FillHole fill)
      : directory_(std::move(directory)), status_(status), log_(log), fill_(fill) {}

  /// Returns the bytes read, or -errno. Sees each write of this node that ended before the call; of writes of other
  /// nodes, those that CachedStatus::refresh_if_older_than() found.
  [[nodiscard]] std::int64_t read(std::int64_t offset, std::span<std::byte> bytes, IfLost if_lost = IfLost::fail);
  /// The same, but returns -EAGAIN if the index must be read first, which takes long.
  [[nodiscard]] std::int64_t read_if_known(std::int64_t offset, std::span<std::byte> bytes);
  /// lseek(2) with SEEK_DATA or SEEK_HOLE. Returns the offset, or -errno.
  [[nodiscard]] std::int64_t seek(std::int64_t offset, int whence);

  /// Calls use(descriptor, offset in it, bytes) if a single data dropping holds the whole range, or as much of it as
  /// the file has; the descriptor is valid during the call. Returns false, without a call, otherwise: use read().
  [[nodiscard]] bool with_data_of(std::int64_t offset, std::int64_t length,
                                  const std::function<void(int, std::int64_t, std::size_t)>& use);

  /// Returns the index of this process, for import_index_snapshot() in another one. Fails with `infeasible` while other
  /// processes write, and for a traditional index.
  [[nodiscard]] Result<std::vector<std::byte>> export_index_snapshot();
  /// Uses the index of another process without reading the indices. Later changes are detected as usual. Returns false
  /// if the snapshot cannot be used, or if this view has an index already.
  bool import_index_snapshot(std::span<const std::byte> bytes);

 private:
  enum class Depth {
    new_writes,  ///< follow the writers if that is possible
    whole,       ///< merge all indices
  };
  int refresh(std::int64_t begin, std::int64_t end, Depth depth = Depth::new_writes);
  int refresh_noticed(std::int64_t begin, std::int64_t end, Depth depth);
  std::optional<Result<std::int64_t>> try_read(std::int64_t offset, std::span<std::byte> bytes);
  [[nodiscard]] std::size_t length_before_loss(std::int64_t offset, std::size_t length);
  Result<void> read_again();
  std::size_t close_idle_fds();
  [[nodiscard]] bool is_known();

  const std::shared_ptr<const ContainerDirectory> directory_;
  CachedStatus& status_;
  const FailureLog& log_;
  const FillHole fill_;
  std::shared_mutex mutex_;  ///< exclusive to replace what the view shows
  std::unique_ptr<ContainerView> view_;
  Follower follower_{keeper_};
  FdKeeper keeper_{[this] { return close_idle_fds(); }};  ///< last: it may run until it is destroyed
};

}  // namespace iosig
