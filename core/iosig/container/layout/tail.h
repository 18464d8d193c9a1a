// What a writer has written since its last frame, in a mapped file: a write costs a few stores, and whoever reads the
// file later finds all of them, even if the writer was killed in between.
//
// Writes of one length at even distances share a record, so that a regular writer never fills it. The kernel keeps the
// pages of a process that dies; sync() keeps them through a loss of power.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/files.h"

namespace iosig {

/// `count` writes: of write n, the logical offset is logical + n stride and the physical one physical + n length.
/// A record counts once `check` fits; it is 0 while the record is made. As in the file, little-endian.
struct TailRecord {
  std::int64_t logical = 0, length = 0, stride = 0, physical = 0, sequence = 0;
  std::uint64_t check = 0;
  std::uint64_t count = 0;
  std::uint64_t count_again = 0;  ///< count, or one less of who died between the two; no record lies in two sectors

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

/// The sound records of a tail file's `bytes`, each beginning where the one before ends in the data dropping. What
/// follows, older records or ones half written, is left out. Never fails: a tail of another version has none.
[[nodiscard]] std::vector<TailRecord> read_tail(std::span<const std::uint8_t> bytes);

/// Whose a tail is, as its head says.
[[nodiscard]] std::uint64_t tail_identity(std::string_view container, std::int64_t writer);

/// Whether the tail of a dead writer tells that records of it are lost, where its index ends at `known` of
/// `data_bytes`: a record that is neither sound nor half written, one that is sound behind the end of the others, or no
/// room for any.
[[nodiscard]] bool has_lost_records(std::span<const std::uint8_t> bytes, std::int64_t known, std::int64_t data_bytes);

/// Whether it is another's tail, or one whose head is gone although its writer has written `data_bytes` behind `known`.
[[nodiscard]] bool is_foreign_tail(std::span<const std::uint8_t> bytes, std::uint64_t identity, std::int64_t known,
                                   std::int64_t data_bytes);

/// Whether the writer of an open tail lives, on this node or, where locks reach that far, on another; also true where
/// the file system cannot lock. If it is dead, the caller's descriptor holds a shared lock on the tail afterwards.
[[nodiscard]] bool is_alive(const Fd& tail);

/// Of one writer, who is one thread at a time.
class Tail {
 public:
  /// Makes the file `name` in `directory`, exclusively, with room for the first records; `shown` names it in messages.
  static Result<Tail> make(const Fd& directory, const std::string& name, std::string shown, std::uint64_t identity);
  Tail() = default;
  Tail(Tail&& other) noexcept { swap(other); }
  Tail& operator=(Tail&& other) noexcept {
    swap(other);
    return *this;
  }
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  ~Tail();

  /// Notes a write. false: there is no room for it, and nothing has changed; make_room() or clear() first.
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
  /// Twice the room. false: it has the most already, or the file system gives no more.
  [[nodiscard]] bool make_room();
  /// Forgets all records: a frame holds their writes now.
  void clear() {
    used_ = 0;
    last_ = nullptr;
  }
  [[nodiscard]] bool is_empty() const { return used_ == 0; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Until it returns, what was noted may be lost with power.
  [[nodiscard]] Result<void> sync();

 private:
  bool begin_record(std::int64_t logical, std::int64_t length, std::int64_t physical, std::int64_t sequence);
  void swap(Tail& other) noexcept;

  Fd fd_;
  std::string shown_;
  std::byte* mapped_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;  ///< used_: records
  TailRecord* last_ = nullptr;
  std::uint64_t next_logical_ = 0, count_ = 0;  ///< of last_; modulo 2^64
};

}  // namespace iosig
