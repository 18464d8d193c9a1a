// Rounds times to multiples of a number of ticks, without division instructions: for traces that keep whole
// microseconds (PackOptions::quantum_ticks).
#pragma once

#include <algorithm>
#include <cstdint>

#include "iosig/trace/part_layout.h"

namespace iosig::trace {

class Rounder {
 public:
  /// 0 and 1: times stay as they are.
  explicit Rounder(std::uint64_t quantum)
      : quantum_(std::max<std::uint64_t>(quantum, 1)), inverse_(UINT64_MAX / quantum_) {}
  [[nodiscard]] bool is_exact() const { return quantum_ == 1; }
  [[nodiscard]] std::uint64_t down(std::uint64_t ticks) const {
    __extension__ using Wide = unsigned __int128;
    std::uint64_t multiple = static_cast<std::uint64_t>(Wide{ticks} * inverse_ >> 64) * quantum_;
    while (ticks - multiple >= quantum_) multiple += quantum_;
    return multiple;
  }
  [[nodiscard]] std::uint64_t start(const Slot& slot) const { return is_exact() ? slot.start : down(slot.start); }
  [[nodiscard]] std::uint64_t end(const Slot& slot) const {
    if (is_exact()) return slot.end;
    return down(slot.start) + down(slot.end - slot.start + quantum_ / 2);
  }

 private:
  std::uint64_t quantum_, inverse_;
};

}  // namespace iosig::trace
