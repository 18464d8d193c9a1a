// Single elements (literals, exceptions) as flat segments of the logical file: the newest wins, the others are cut.
#pragma once

#include <cstdint>
#include <vector>

#include "iosig/analyze/lookup_leaf.h"

namespace iosig {

/// One written element.
struct Written {
  std::int64_t begin = 0, end = 0;  ///< logical
  std::int64_t physical = 0, id = 0;
  std::uint64_t position = 0;
};

/// 40 bytes for each segment, at most two for each element. Nothing is known of elements of no bytes.
class Segments {
 public:
  Segments() = default;
  /// In any order. Takes n log n.
  explicit Segments(std::vector<Written> elements);

  /// Quick where elements lie about evenly, at worst a binary search; to be asked first.
  void search(ByteSearch& search) const;
  [[nodiscard]] std::int64_t end() const { return begins_.empty() ? 0 : begins_.back() + rest_.back().length; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return begins_.capacity() * sizeof(std::int64_t) + rest_.capacity() * sizeof(Rest);
  }

 private:
  struct Rest {
    std::int64_t length, physical, id;
    std::uint64_t position;
  };
  std::vector<std::int64_t> begins_;  ///< apart from the rest, so that searching touches little memory
  std::vector<Rest> rest_;
  double per_byte_ = 0;  ///< segments, of those between the first and the last
};

}  // namespace iosig
