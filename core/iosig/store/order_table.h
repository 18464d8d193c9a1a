// The order of the writes of one node, shared by its writers through a mapped file in the container.
//
// Each writer claims the bytes that it may write next, and bears a number. While nobody else wants a byte of its claim,
// a write costs a comparison and a load. Who claims bytes that somebody else has claimed sends that writer back for a
// new claim before its next write. With a new claim comes a new number, unless the claim is apart from all that others
// with greater numbers may have written: what they claim, and a summary of what they claimed before. So of two writes
// of one byte the one that began after the other had ended has the greater number; those that met in time may stand
// either way.
//
// Why: claims are made under one lock, and new numbers grow from one to the next. Let b begin after a ended, and share
// a byte with it. If b's claim was made after a's, a lay in a claim or in the summary of a's writer then: b's number
// was greater, or became so. If b's claim was made before a's, it was still there when a's was made, and b's writer was
// sent back before a began: so b bears a later claim.
//
// Who writes at random has nothing to claim but the write at hand, and joins the crowd: it takes a new number for each
// write, makes it known, and looks whether there are claims at all. If there are none, that was it: two of the crowd
// are in order by their numbers. If there are, it goes on under the lock and sends back those whose claims it meets.
// Who claims is counted before it looks at the numbers of others, so one of the two sees the other: either the claimer
// a greater number than its own, for which it takes a new one, or the writer a claim.
//
// Numbers are the microseconds since 1970, or one more than the last: so those of different nodes are in the order of
// their clocks. Who has a number of the crowd, and nothing to come after on other nodes, takes one more than the last
// without a look at the clock, as a claim's number stays what it was.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "iosig/base/files.h"
#include "iosig/store/claim.h"

namespace iosig {

/// What a new table begins with: everything that is in the container already comes before.
struct OrderStart {
  std::int64_t sequence = 0;  ///< the greatest number in use
  std::int64_t next_id = 0;   ///< no writer has this or a greater one
  std::int64_t size = 0;      ///< of the logical file
};

struct OrderSlot;
struct OrderTable;

/// A place at the table. One thread at a time.
class OrderSeat {
 public:
  /// Takes a free place at this node's table in the container `folder`, which is made when it is missing; `start` is
  /// asked then. `shown`: the container's path. `owner`: whose writer it is, for OrderWatch.
  static Result<OrderSeat> take(const Fd& folder, const std::string& shown,
                                const std::function<Result<OrderStart>()>& start, std::uint64_t owner = 0);
  OrderSeat() = default;
  OrderSeat(OrderSeat&& other) noexcept { swap(other); }
  OrderSeat& operator=(OrderSeat&& other) noexcept {
    swap(other);
    return *this;
  }
  OrderSeat(const OrderSeat&) = delete;
  OrderSeat& operator=(const OrderSeat&) = delete;
  ~OrderSeat();

  /// The number of a write of `length` > 0 bytes at `offset`; ask before it begins.
  [[nodiscard]] std::int64_t number_for(std::uint64_t offset, std::uint64_t length) {
    if (is_revoked() || !claim_.covers(offset, length)) return renew(offset, length);
    previous_ = offset;
    if (offset < low_) low_ = offset;
    if (offset + length > high_) high_ = offset + length;
    return number_;
  }
  /// A number for a change of all bytes in [begin, end), after all writes there that have ended.
  [[nodiscard]] std::int64_t number_once(std::uint64_t begin, std::uint64_t end);
  /// The next write gets a new number, after those that other nodes gave before.
  void renew_at_next();

  /// In a child by fork: the seat stays its parent's.
  void let_go();

  /// An id that no writer has had; the droppings' exclusive creation decides.
  [[nodiscard]] std::int64_t next_id();
  /// The logical file ends at `end` at least.
  void extend(std::int64_t end);
  /// Where the logical file ends for this node's writers, appends included that are being written.
  [[nodiscard]] std::int64_t size() const;
  /// Room for `length` bytes at the end: their offset. No other append gets it. end_append() must follow.
  [[nodiscard]] std::int64_t append(std::int64_t length);
  /// Of these bytes the first `done` were written. If no later append lies behind them, the next one goes there.
  void end_append(std::int64_t offset, std::int64_t length, std::int64_t done);
  /// The file was cut to, or ends at, `size`.
  void set_size(std::int64_t size);
  /// What this writer changed can be read: after each change, before whoever asked for it is told.
  void changed();

 private:
  [[nodiscard]] bool is_revoked() const;
  std::int64_t renew(std::uint64_t offset, std::uint64_t length);
  std::int64_t new_number();
  void leave_claim();
  void give_back_room_of_dead();
  void swap(OrderSeat& other) noexcept;
  static Result<void> make_table(const Fd& folder, const std::string& name, const std::string& path,
                                 const OrderStart& start);
  Result<void> map_table(const std::string& path);
  Result<void> sit_down(const std::string& path, std::uint64_t owner);
  using Table = OrderTable;

  Fd fd_;
  Table* table_ = nullptr;
  OrderSlot* slot_ = nullptr;
  Claim claim_;
  ClaimGuess guess_;
  std::int64_t number_ = 0;
  std::uint64_t previous_ = 0, low_ = 0, high_ = 0;  ///< of the last write; of the writes under claim_
  bool is_in_crowd_ = false;                         ///< claims nothing, and takes a number for each write
};

/// What readers ask of this node's table: whether somebody has changed the file since they looked.
class OrderWatch {
 public:
  OrderWatch() = default;
  OrderWatch(const OrderWatch&) = delete;
  OrderWatch& operator=(const OrderWatch&) = delete;
  ~OrderWatch();

  /// Watches the table in the container `folder`, if there is one; a table that is watched is not taken for deserted.
  bool look(const Fd& folder);
  [[nodiscard]] bool is_watching() const { return table_ != nullptr; }
  /// Another number after each change that a writer of this node made, but for those of `owner` (not 0), and after
  /// each that begins to write. Changes that ended before the call are in it.
  [[nodiscard]] std::uint64_t changes(std::uint64_t owner) const;

 private:
  Fd fd_;
  const OrderTable* table_ = nullptr;
};

/// Of a table that is being made, or whose maker died.
inline constexpr std::string_view order_draft_prefix = ".order.";

/// Whether other nodes have the container open to write; asked anew when a name in its folder came or went.
class OtherNodes {
 public:
  [[nodiscard]] Result<bool> are_there(const Fd& folder, const std::string& shown);

 private:
  std::int64_t folder_changed_ns_ = -1;
  bool are_there_ = false;
};

/// Name of this node's table in a container, and whether `name` is that of any node's.
[[nodiscard]] std::string order_table_name();
[[nodiscard]] bool is_order_table(std::string_view name);

}  // namespace iosig
