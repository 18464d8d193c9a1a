// The writes that one process of a replay has to do: those of some ranks, each in its order.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "iosig/format/index_frames.h"
#include "iosig/model/pattern_cursor.h"
#include "iosig/store/write_map.h"

namespace iosig {

struct Turn {
  std::uint32_t seat = 0;  ///< which of the process's ranks
  std::int64_t offset = 0, length = 0;
  std::int64_t physical = 0;   ///< bytes that the rank wrote before
  std::uint64_t sequence = 0;  ///< writes of all ranks before
};

/// Of process `number` of `processes`: the ranks at number, number + processes, ... in the map, a write of each in
/// turn, or all in the map's order. Refers to the map.
class RankTurns {
 public:
  RankTurns(const WriteMap& map, std::uint32_t number, std::uint32_t processes, bool in_order) : in_order_(in_order) {
    for (std::size_t n = number; n < map.ranks.size(); n += processes) {
      seats_.push_back({&map.ranks[n], PatternCursor(map.ranks[n].writes), {}});
      take(static_cast<std::uint32_t>(seats_.size() - 1), 0);
    }
  }

  [[nodiscard]] std::size_t seats() const { return seats_.size(); }
  [[nodiscard]] std::int64_t rank(std::uint32_t seat) const { return seats_[seat].writes->rank; }

  /// false when all is done, which leaves `turn` alone.
  bool next(Turn& turn) {
    if (waiting_.empty()) return false;
    const Waiting first = waiting_.top();
    waiting_.pop();
    const auto& v = seats_[first.seat].vector;
    turn = {first.seat, v[logical_offset], v[write_length], v[physical_offset],
            static_cast<std::uint64_t>(v[write_sequence])};
    take(first.seat, first.round + 1);
    return true;
  }

 private:
  struct Seat {
    const RankWrites* writes;
    PatternCursor cursor;
    std::array<std::int64_t, index_columns> vector;  ///< the next
  };
  struct Waiting {
    std::uint64_t when, round;
    std::uint32_t seat;
    bool operator>(const Waiting& other) const { return when != other.when ? when > other.when : seat > other.seat; }
  };

  void take(std::uint32_t seat, std::uint64_t round) {
    Seat& at = seats_[seat];
    if (!at.cursor.next(at.vector)) return;
    waiting_.push({in_order_ ? static_cast<std::uint64_t>(at.vector[write_sequence]) : round, round, seat});
  }

  bool in_order_;
  std::vector<Seat> seats_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace iosig
