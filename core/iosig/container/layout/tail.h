// The write-ahead tail: a mapped file with the writes since the last frame of the index. A write costs a few stores.
// Readers find all of them later, even if the writer was killed.
//
// Writes of one length at a constant stride share one record, so a regular writer never fills the file. The kernel
// keeps the pages of a process that dies; sync() makes them survive a power failure.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/files.h"

namespace iosig {

/// `count` writes: write n has the logical offset logical + n stride and the physical offset physical + n length. A
/// record is valid once `check` matches; `check` is 0 while the record is being filled in. Little-endian, as in the
/// file.
struct TailRecord {
  std::int64_t logical = 0, length = 0, stride = 0, physical = 0, sequence = 0;
  std::uint64_t check = 0;
  std::uint64_t count = 0;
  /// `count`, or one less if the writer died between the two stores; no record spans two sectors.
  std::uint64_t count_again = 0;

  /// Whether the check matches and the fields describe possible writes.
  [[nodiscard]] bool is_valid() const;
  [[nodiscard]] bool has_sure_count() const { return count - count_again <= 1; }
  [[nodiscard]] std::uint64_t expected_check() const {
    std::uint64_t mixed = 0x9e3779b97f4a7c15;
    for (const std::int64_t part : {logical, length, stride, physical, sequence}) {
      mixed = (mixed ^ static_cast<std::uint64_t>(part)) * 0xff51afd7ed558ccd;
      mixed ^= mixed >> 32;
    }
    return mixed;
  }
};
static_assert(sizeof(TailRecord) == 64);

/// What the last sync() has made durable: the first bytes of both droppings, and their CRC-32Cs.
struct SyncedBytes {
  std::int64_t data = 0, index = 0;
  std::uint32_t data_checksum = 0, index_checksum = 0;

  bool operator==(const SyncedBytes&) const = default;
};

/// Returns what the head of a tail says of the last sync(); nothing if there was none. If the writer is dead, the index
/// and the records describe at least these bytes, unless some of them are lost.
[[nodiscard]] std::optional<SyncedBytes> synced_bytes(std::span<const std::uint8_t> tail);

/// Whether the place of these numbers was changed: they do not match their check, nor was a sync() renewing them.
[[nodiscard]] bool has_changed_synced_bytes(std::span<const std::uint8_t> tail);

/// Returns the valid records of a tail file's `bytes`. Each begins where the previous one ends in the data dropping;
/// older or half-written records after them are left out. Never fails: a tail of another version has no records.
[[nodiscard]] std::vector<TailRecord> read_tail(std::span<const std::uint8_t> bytes);

/// Returns the identity that the head of a tail holds for its writer.
[[nodiscard]] std::uint64_t tail_identity(std::string_view container, std::int64_t writer);

/// Whether the open file is the tail of the writer with this identity.
[[nodiscard]] bool is_tail_of(const Fd& file, std::uint64_t identity);

/// Whether records of a dead writer's tail are lost, if its index covers `known` of `data_bytes`. True if a record is
/// neither valid nor half-written, if a valid record lies behind the end of the others, or if the file is too short for
/// any record and the index lacks data.
[[nodiscard]] bool has_lost_records(std::span<const std::uint8_t> bytes, std::int64_t known, std::int64_t data_bytes);

/// Whether the tail belongs to another writer, or has lost its head although its writer wrote data behind `known`.
[[nodiscard]] bool is_foreign_tail(std::span<const std::uint8_t> bytes, std::uint64_t identity, std::int64_t known,
                                   std::int64_t data_bytes);

/// Whether the writer of an open tail is alive, on this node or, where locks work across nodes, on another. Also true
/// where the file system does not support locks. If it is dead, the caller's descriptor holds a shared lock on the tail
/// afterwards.
[[nodiscard]] bool is_alive(const Fd& tail);

/// The tail of one writer. Used by one thread at a time.
class Tail {
 public:
  /// Locks the new file `file`, reserves space for the first records, and maps it. The mapping keeps the lock that
  /// is_alive() tests when the caller closes the file. `shown`: its path in messages. Fails with EAGAIN if repair has
  /// taken the file.
  static Result<Tail> make(const Fd& file, std::string shown, std::uint64_t identity);
  Tail() = default;
  Tail(Tail&& other) noexcept { swap(other); }
  Tail& operator=(Tail&& other) noexcept {
    swap(other);
    return *this;
  }
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  ~Tail();

  /// Records a write. false: the tail is full and unchanged; call make_room() or clear() first.
  [[nodiscard]] bool note(std::int64_t logical, std::int64_t length, std::int64_t physical, std::int64_t sequence) {
    if (last_ != nullptr && static_cast<std::uint64_t>(logical) == next_logical_ && length == last_->length &&
        sequence == last_->sequence) {
      next_logical_ += static_cast<std::uint64_t>(last_->stride);
      std::atomic_ref(last_->count).store(++count_, std::memory_order_release);
      std::atomic_ref(last_->count_again).store(count_, std::memory_order_release);
      return true;
    }
    return begin_record(logical, length, physical, sequence);
  }
  /// Doubles the size. `file` must be open for writing. false: the tail is already at its maximum, the file system has
  /// no space, or `file` is another file.
  [[nodiscard]] bool make_room(const Fd& file);
  /// Discards all records, after a frame holds their writes.
  void clear() {
    used_ = 0;
    last_ = nullptr;
  }
  [[nodiscard]] bool is_empty() const { return used_ == 0; }
  /// Flushes all records, then `synced`, which the caller has flushed. **Until it returns, a power failure may lose
  /// them.**
  [[nodiscard]] Result<void> sync(const SyncedBytes& synced);

 private:
  bool begin_record(std::int64_t logical, std::int64_t length, std::int64_t physical, std::int64_t sequence);
  void swap(Tail& other) noexcept;

  std::string shown_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::byte* mapped_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;  ///< used_: records
  TailRecord* last_ = nullptr;
  std::uint64_t next_logical_ = 0, count_ = 0;  ///< of last_; modulo 2^64
  SyncedBytes synced_;
};

}  // namespace iosig
