// Single elements (literals, exceptions) as flat segments of the logical file. The newest wins; older ones are cut.
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

/// Segments of 40 bytes, at most two for each element. Elements of no bytes are ignored.
class Segments {
 public:
  Segments() = default;
  /// Takes elements in any order, in O(n log n).
  explicit Segments(std::vector<Written> elements);

  /// Searches for the byte: fast if elements are evenly spaced, otherwise a binary search. To be called before the
  /// other searches.
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
  std::vector<std::int64_t> begins_;  ///< apart from the rest: the search touches little memory
  std::vector<Rest> rest_;
  double per_byte_ = 0;  ///< segments per byte between the first and the last
};

}  // namespace iosig
