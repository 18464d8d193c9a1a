// The open data droppings of one container, for any number of reading threads.
//
// A container may have more writers than the process may have descriptors, so the cache is bounded. Beyond the bound
// each reader gets a temporary descriptor of its own, until it asks for the next one. The owner can empty the cache
// when no reader is active.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "iosig/base/kept_fds.h"
#include "iosig/container/layout/container_directory.h"

namespace iosig {

class DataDroppings {
 public:
  explicit DataDroppings(const ContainerDirectory& directory);
  DataDroppings(const DataDroppings&) = delete;
  DataDroppings& operator=(const DataDroppings&) = delete;

  /// From now on `keeper` decides how many descriptors are kept; until then max_kept_fds(). Its `close_idle` must call
  /// close_idle(), when no reader is active.
  void set_keeper(FdKeeper* keeper) { keeper_ = keeper; }

  /// Returns the descriptor of the writer's data dropping if it is open and the writer's id is small; else -1. Acquires
  /// no lock.
  [[nodiscard]] int find(std::int64_t id) const {
    return static_cast<std::uint64_t>(id) < fds_.size()
               ? fds_[static_cast<std::size_t>(id)].load(std::memory_order_acquire)
               : -1;
  }
  /// Opens the data dropping for reading, or returns the open descriptor. If the cache is full, `temporary` owns the
  /// descriptor and closes the one that it held before. Fails as `bad_input` if the dropping is missing or not a
  /// regular file, as `system` otherwise.
  [[nodiscard]] Result<int> open(std::int64_t id, Fd& temporary);

  /// Closes all descriptors. The caller ensures that no other thread uses one of them.
  void close_all();
  /// The same, called by the keeper. Returns the number of descriptors.
  std::size_t close_idle();
  /// close_all(); and the next opens keep none.
  void stop_keeping();

 private:
  Result<Fd> open_dropping(std::int64_t id) const;
  [[nodiscard]] bool may_keep_one();
  std::size_t clear();

  const ContainerDirectory& directory_;
  std::mutex mutex_;
  FdKeeper* keeper_ = nullptr;
  int not_kept_ = 0;  ///< the next so many opens keep none
  std::map<std::int64_t, Fd> open_;
  std::array<std::atomic<int>, 64> fds_;  ///< copies of the descriptors of the first writers; -1: not open
};

}  // namespace iosig
