// Checks bytes that a replay of a trace reads: each must be what one of some origins wrote at its offset, or zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/origin.h"

namespace iosig {

struct WrongBytes {
  std::uint64_t count = 0;
  std::int64_t first = -1;  ///< offset of the first one
};

class ContentChecker {
 public:
  /// Counts the bytes, read at `offset`, that no origin explains. A byte that is wrong by itself is right by chance for
  /// one in 256 / (origins + 1); wrong ranges are found.
  void check(std::span<const std::byte> bytes, std::int64_t offset, std::span<const WriteOrigin> origins,
             WrongBytes& wrong);

 private:
  /// Returns how many of the bytes, which are at `offset`, are those of the origin.
  [[nodiscard]] std::size_t matching(std::span<const std::byte> bytes, std::int64_t offset, WriteOrigin origin);

  std::vector<std::byte> expected_;
  std::size_t last_ = 0;  ///< the origin that matched last
};

}  // namespace iosig
