// The writes of one process in a replay: those of some ranks, each in its order.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include "iosig/container/layout/index_frames.h"
#include "iosig/model/pattern_cursor.h"
#include "iosig/replay/write_map.h"

namespace iosig {

struct Turn {
  std::uint32_t local_rank = 0;  ///< index among the process's ranks
  std::int64_t offset = 0, length = 0;
  std::int64_t physical = 0;   ///< bytes that the rank wrote before this write
  std::uint64_t sequence = 0;  ///< number of earlier writes of all ranks
};

/// The turns of process `number` of `processes`. It has the ranks at positions number, number + processes, ... in the
/// map. It takes one write of each rank in turn, or all in the map's order. Keeps a reference to the map.
class RankTurns {
 public:
  RankTurns(const WriteMap& map, std::uint32_t number, std::uint32_t processes, bool in_order) : in_order_(in_order) {
    for (std::size_t n = number; n < map.ranks.size(); n += processes) {
      local_ranks_.push_back({&map.ranks[n], PatternCursor(map.ranks[n].writes), {}});
      take(static_cast<std::uint32_t>(local_ranks_.size() - 1), 0);
    }
  }

  [[nodiscard]] std::size_t local_ranks() const { return local_ranks_.size(); }
  [[nodiscard]] std::int64_t rank(std::uint32_t local_rank) const { return local_ranks_[local_rank].writes->rank; }

  /// Sets `turn` to the next write. Returns false, and leaves `turn` unchanged, when all are done.
  bool next(Turn& turn) {
    if (waiting_.empty()) return false;
    const Waiting first = waiting_.top();
    waiting_.pop();
    const auto& v = local_ranks_[first.local_rank].vector;
    turn = {first.local_rank, v[logical_offset], v[write_length], v[physical_offset],
            static_cast<std::uint64_t>(v[write_sequence])};
    take(first.local_rank, first.round + 1);
    return true;
  }

 private:
  struct LocalRank {
    const RankWrites* writes;
    PatternCursor cursor;
    std::array<std::int64_t, index_columns> vector;  ///< the rank's next write
  };
  struct Waiting {
    std::uint64_t when, round;
    std::uint32_t local_rank;
    bool operator>(const Waiting& other) const {
      return when != other.when ? when > other.when : local_rank > other.local_rank;
    }
  };

  void take(std::uint32_t local_rank, std::uint64_t round) {
    LocalRank& at = local_ranks_[local_rank];
    if (!at.cursor.next(at.vector)) return;
    waiting_.push({in_order_ ? static_cast<std::uint64_t>(at.vector[write_sequence]) : round, round, local_rank});
  }

  bool in_order_;
  std::vector<LocalRank> local_ranks_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace iosig
