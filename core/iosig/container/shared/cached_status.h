// Size and times of a container in use, and which bytes changed since the index was last read.
//
// Changes of this process are recorded when it makes them. Changes of other processes of the node appear in the
// sequencer's shared memory; checking it costs one load. Changes of other nodes appear only in the sizes and times of
// the droppings, which are compared when the caller asks for a status that is newer than the cached one.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/shared/failures.h"

namespace iosig {

/// Safe from any thread. Its lock is acquired last: no function calls other code with a lock while holding it.
class CachedStatus {
 public:
  CachedStatus(std::shared_ptr<const ContainerDirectory> directory, const FailureLog& log);

  /// The owner id of this process's writers of the container: see SequencerWatch::changes().
  [[nodiscard]] std::uint64_t owner() const { return owner_; }
  /// Grows whenever the content may have changed.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(); }

  /// Fills in stat(2)'s answer for the logical file. Looks for changes on other nodes if it last did so more than
  /// `age_s` seconds ago. Returns 0 or errno.
  int get(struct stat& status, double age_s);
  /// Looks for changes on other nodes, too, unless it did so within `age_s` seconds. Returns 0 or errno.
  int refresh_if_older_than(double age_s);
  /// Checks for changes of other processes of this node. Sees all changes that ended before the call.
  void notice_others() {
    if (!is_watching() || watch_.changes(owner_) != noticed_.load(std::memory_order_acquire)) note_others();
  }

  /// Called after this process wrote bytes [begin, end) of the file to the data dropping `fd`, whose modification time
  /// is now that of the file.
  void wrote(std::int64_t begin, std::int64_t end, int fd);
  /// Bytes [begin, end) changed without a write to a data dropping. `grows`: the file ends at `end` at least.
  void changed(std::int64_t begin, std::int64_t end, bool grows);
  void truncated(std::int64_t size);
  /// Called before the data dropping `fd` is closed.
  void forget_data(int fd);
  /// The same, unless another thread holds the lock; then returns false.
  bool try_forget_data(int fd);
  /// Size or times changed otherwise: the next get() reads them again.
  void forget();

  // For the view of the same container (container/shared/cached_view):

  /// Whether a byte in [begin, end) may have changed since the index was read.
  [[nodiscard]] bool is_stale(std::int64_t begin, std::int64_t end) {
    return has_stale_.load(std::memory_order_acquire) && overlaps_stale(begin, end);
  }
  /// The index is about to be read; bytes that change from here on are stale again. Returns whether all changes since
  /// it was read last were counted by this node's sequencer.
  [[nodiscard]] bool begin_reading();
  /// Returns the watch on the writers of this node, or nullptr if there is none.
  [[nodiscard]] const SequencerWatch* watch() const { return is_watching() ? &watch_ : nullptr; }
  /// The index was read; it shows a file of `size` bytes.
  void end_reading(std::int64_t size);

  /// The status that belongs to an index snapshot for another process.
  struct Snapshot {
    std::uint64_t node_changes = none;  ///< of all writers of this node; none: there is no sequencer
    std::uint64_t fingerprint = 0;      ///< of the droppings; 0: unknown, refresh_if_older_than() then reads them
    static constexpr std::uint64_t none = ~std::uint64_t{0};
  };
  /// Returns the number of changes on this node so far. Called before an index is read for a snapshot.
  [[nodiscard]] std::uint64_t node_changes() const;
  /// Returns the fingerprint if no byte changed since the index was read.
  [[nodiscard]] std::optional<std::uint64_t> fingerprint_if_fresh();
  /// Uses the snapshot of another process. Returns false, and uses nothing, if there is a status already, or if the
  /// snapshot was made on this node (`is_same_node`) with a sequencer that no longer exists.
  bool adopt(const Snapshot& snapshot, const ContainerStatus& status, bool is_same_node);

 private:
  /// The droppings that were there when the directories had this state.
  struct Names {
    std::uint64_t directories = 0;       ///< 0: unknown
    std::uint64_t mixed = 0;             ///< of all names
    std::vector<std::int64_t> active{};  ///< writers with a tail
  };
  [[nodiscard]] std::uint64_t fingerprint();
  void note_others();
  void find_sequencer();
  [[nodiscard]] bool overlaps_stale(std::int64_t begin, std::int64_t end);
  void make_stale(std::int64_t begin, std::int64_t end, bool grows);
  void make_all_stale();
  void read_times();
  [[nodiscard]] bool is_watching() const { return is_watching_.load(std::memory_order_acquire); }

  const std::shared_ptr<const ContainerDirectory> directory_;
  const FailureLog& log_;
  const std::uint64_t owner_;

  SequencerWatch watch_;
  std::atomic<bool> is_watching_{false};
  std::atomic<std::uint64_t> noticed_{0};              ///< changes of others that were processed
  std::atomic<std::int64_t> directory_changed_ns_{0};  ///< when no sequencer was found

  std::mutex mutex_;
  ContainerStatus status_;
  bool has_status_ = false;
  int written_fd_ = -1;  ///< the data dropping that has the times of the last write, until status_ has them; else -1
  double looked_s_ = 0;
  std::uint64_t fingerprint_ = 0;
  Names names_;
  std::int64_t stale_begin_ = 0, stale_end_ = 0;  ///< changed since the index was read
  bool are_all_counted_ = false;                  ///< as begin_reading() returns
  OtherNodes other_nodes_;
  std::int64_t shown_size_ = 0;        ///< of the file as the index shows it; 0 while it is read
  std::atomic<bool> has_stale_{true};  ///< false: there is an index, and no byte changed since
  std::atomic<std::uint64_t> changes_{1};
};

}  // namespace iosig
