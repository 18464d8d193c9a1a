// The sequencer: gives sequence numbers to the writes of one node, through a mapped file in the container that all
// writers of the node share.
//
// If one of two writes to a byte began after the other had ended, it has the greater sequence number. Two writes that
// overlapped in time may have either order.
//
// docs/sequencer.md has the protocol step by step, the proof, and the cases that the proof does not cover.
//
// Example: writer A claims bytes [0, 1000) and gets number 7. Its writes there need no lock: each compares its range
// with the claim and loads one flag. Writer B wants byte 500. It revokes A's claim and gets number 8 for its own. A's
// next write sees the flag, claims again, and gets number 9.
//
// Rules:
// 1. A writer claims the bytes that it may write next, under one lock. The claim has a number.
// 2. A new claim that overlaps another one revokes it. The other writer must claim again before its next write.
// 3. A new claim gets a new number, greater than all before, unless it overlaps no bytes that writers with greater
//    numbers may have written: their claims, and a summary of their earlier claims.
// 4. A writer without a usable claim (random access) is *contended*: it takes a new number for each write, publishes
//    it, and then looks whether there are claims. If there are none, it is done. If there are, it takes the lock and
//    revokes the claims that overlap.
//
// Why this orders writes: let write b begin after write a ended, and let them share a byte. If b's claim was made after
// a's, then a is in a claim or in the summary of a's writer, so b's number became greater (rule 3). If b's claim was
// made before a's, a's claim revoked it (rule 2), and b has a claim that is later than a's.
//
// Rule 4 and claims: a writer that claims is counted before it reads the numbers of others, and a contended writer
// publishes its number before it reads that count. So at least one of the two sees the other.
//
// Numbers are microseconds since 1970, or one more than the last number, so numbers of different nodes follow their
// clocks. A contended writer increments the last number without reading the clock, unless it has to come after other
// nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/container/order/claim.h"

namespace iosig {

/// The initial state of a sequencer. All earlier writes in the container precede it.
struct SequencerStart {
  std::int64_t sequence = 0;  ///< the greatest number in use
  std::int64_t next_id = 0;   ///< no writer has this id or a greater one
  std::int64_t size = 0;      ///< of the logical file
};

struct SharedSlot;
struct SharedSequencer;

/// The counters of one slot, which its present writer and all earlier ones have increased.
struct SlotState {
  std::int64_t writer = -1;   ///< id of the last one; -1: none, or one of an earlier version
  std::uint64_t changes = 0;  ///< of all of them, marks included
  std::uint64_t marks = 0;
};
struct SlotStates {
  std::uint64_t acquisitions = 0;  ///< of all slots
  std::vector<SlotState> slots;
};

/// One writer's slot. Used by one thread at a time.
class SequencerSlot {
 public:
  /// Acquires a free slot of this node's sequencer in the container `directory`. Creates the sequencer from `start` if
  /// it is missing. `shown`: the container's path. `owner`: identifies the writer's owner for SequencerWatch. The slot
  /// uses `directory` later, too.
  static Result<SequencerSlot> take(const Fd& directory, const std::string& shown,
                                    const std::function<Result<SequencerStart>()>& start, std::uint64_t owner = 0);
  SequencerSlot() = default;
  SequencerSlot(SequencerSlot&& other) noexcept { swap(other); }
  SequencerSlot& operator=(SequencerSlot&& other) noexcept {
    swap(other);
    return *this;
  }
  SequencerSlot(const SequencerSlot&) = delete;
  SequencerSlot& operator=(const SequencerSlot&) = delete;
  ~SequencerSlot();

  /// The number of a write of `length` > 0 bytes at `offset`. Call it before the write begins.
  [[nodiscard]] std::int64_t number_for(std::uint64_t offset, std::uint64_t length) {
    if (is_revoked() || !claim_.covers(offset, length)) return renew(offset, length);
    previous_ = offset;
    if (offset < low_) low_ = offset;
    if (offset + length > high_) high_ = offset + length;
    return number_;
  }
  /// A number for a change of all bytes in [begin, end), greater than those of all writes there that have ended.
  [[nodiscard]] std::int64_t number_once(std::uint64_t begin, std::uint64_t end);
  /// Makes the next write take a new number, greater than those that other nodes gave before.
  void renew_at_next();

  /// Releases the slot of a writer that was closed with `index_bytes` of index. Returns whether the caller should merge
  /// the indices: no other writer of this node is active, and the writers that were closed since this function last
  /// returned true have indices of `worth` bytes or more.
  [[nodiscard]] bool leave(std::int64_t index_bytes, std::int64_t worth);
  /// Releases the mapping in a forked child. The slot stays the parent's.
  void let_go();

  /// Returns an id that no writer on this node has had. Exclusive creation of the dropping decides between nodes.
  [[nodiscard]] std::int64_t next_id();
  /// Grows the logical file to `end` if it is shorter.
  void extend(std::int64_t end);
  /// The logical size for this node's writers, including appends in progress.
  [[nodiscard]] std::int64_t size() const;
  /// Reserves `length` bytes at the end for one append and returns their offset. end_append() must follow.
  [[nodiscard]] std::int64_t append(std::int64_t length);
  /// Ends an append that wrote `done` of its bytes. The rest is released if no later append lies behind it.
  void end_append(std::int64_t offset, std::int64_t length, std::int64_t done);
  /// Sets the logical size to `size`, which may be smaller.
  void set_size(std::int64_t size);
  /// Publishes that this writer has changed the file. Call it after each change, before the caller returns.
  void changed();
  /// The same for a change that is not in the writer's tail.
  void marked();
  /// Publishes the id of the slot's writer, before its first change.
  void set_writer(std::int64_t id);

 private:
  [[nodiscard]] bool is_revoked() const;
  std::int64_t renew(std::uint64_t offset, std::uint64_t length);
  [[nodiscard]] std::span<SharedSlot> slots() const;
  [[nodiscard]] bool is_taken(std::uint32_t slot) const;
  [[nodiscard]] bool holds_overlapping(const SharedSlot& slot, const Claim& claim) const;
  [[nodiscard]] Claim largest_free(Claim wanted, std::uint64_t length);
  [[nodiscard]] bool has_greatest_number() const;
  std::int64_t new_number();
  void leave_claim();
  void give_slot_back();
  void give_back_room_of_dead();
  void swap(SequencerSlot& other) noexcept;
  static Result<void> make_table(const Fd& directory, const std::string& name, const std::string& path,
                                 const SequencerStart& start);
  Result<void> map_table(const Fd& file, const std::string& path);
  Result<void> acquire(const Fd& file, const std::string& path, std::uint64_t owner);
  using Table = SharedSequencer;

  const Fd* directory_ = nullptr;
  Table* table_ = nullptr;  ///< the mapping keeps the lock of the slot
  SharedSlot* slot_ = nullptr;
  Claim claim_;
  ClaimGuess guess_;
  std::int64_t number_ = 0;
  std::uint64_t previous_ = 0, low_ = 0, high_ = 0;  ///< of the last write; of the writes under claim_
  bool is_contended_ = false;                        ///< has no claim, and takes a number for each write
};

/// For readers: tells whether a writer of this node has changed the file since the last look.
class SequencerWatch {
 public:
  SequencerWatch() = default;
  SequencerWatch(const SequencerWatch&) = delete;
  SequencerWatch& operator=(const SequencerWatch&) = delete;
  ~SequencerWatch();

  /// Starts to watch the sequencer in the container `directory`; false if there is no valid one. Other nodes do not
  /// remove a watched sequencer as deserted.
  bool look(const Fd& directory);
  [[nodiscard]] bool is_watching() const { return table_ != nullptr; }
  /// Returns a number that differs after each change by a writer of this node, except those of `owner` (if not 0), and
  /// after each writer that opens the container. Includes every change that ended before the call.
  [[nodiscard]] std::uint64_t changes(std::uint64_t owner) const;
  /// Reads the states of all slots. They include every change that ended before the call. Leaves `states` empty while a
  /// writer takes a slot.
  void read(SlotStates& states) const;
  /// Brings `states` up to date and lists the slots whose writers have written since. Returns false, with any result,
  /// if some changes are not in the tails of these writers: after a mark, or when another writer has taken a slot.
  [[nodiscard]] bool update(SlotStates& states, std::vector<std::size_t>& changed) const;

 private:
  [[nodiscard]] std::span<const SharedSlot> slots() const;

  const SharedSequencer* table_ = nullptr;
};

/// Prefix of a sequencer that is being created, or whose creator was killed.
inline constexpr std::string_view order_draft_prefix = ".order.";

/// Tells whether other nodes have the container open for writing. Lists the directory again only when its time of
/// modification changed.
class OtherNodes {
 public:
  [[nodiscard]] Result<bool> are_there(const Fd& directory, const std::string& shown);

 private:
  std::int64_t directory_changed_ns_ = -1;
  bool are_there_ = false;
};

/// Returns the name of this node's sequencer in a container; is_sequencer() accepts that of any node.
[[nodiscard]] std::string sequencer_name();
[[nodiscard]] bool is_sequencer(std::string_view name);

}  // namespace iosig
