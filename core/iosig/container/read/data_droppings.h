// The open data droppings of one container, for any number of reading threads.
//
// A container may have more writers than the process may have descriptors, so the cache is bounded. Beyond the bound
// each reader gets a temporary descriptor of its own, until it asks for the next one. The owner can empty the cache
// with close_all() when no reader is active.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "iosig/container/layout/container_directory.h"

namespace iosig {

class DataDroppings {
 public:
  explicit DataDroppings(const ContainerDirectory& directory);

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

  [[nodiscard]] bool is_full() const { return count_.load(std::memory_order_relaxed) >= max_open; }
  /// Closes all descriptors. The caller ensures that no other thread uses one of them.
  void close_all();

 private:
  static constexpr std::size_t max_open = 512;
  Result<Fd> open_dropping(std::int64_t id) const;

  const ContainerDirectory& directory_;
  std::mutex mutex_;
  std::map<std::int64_t, Fd> open_;
  std::atomic<std::size_t> count_{0};     ///< entries of open_
  std::array<std::atomic<int>, 64> fds_;  ///< copies of the descriptors of the first writers; -1: not open
};

}  // namespace iosig
