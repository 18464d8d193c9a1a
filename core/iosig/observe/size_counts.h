// How often accesses of each size occurred.
#pragma once

#include <cstdint>
#include <map>

namespace iosig::observe {

/// Exact while there are at most 64 different sizes; with more, each is rounded to three binary digits (an error of at
/// most 1/8). Memory: at most 64 * 8 sizes.
class SizeCounts {
 public:
  void add(std::uint64_t bytes, std::uint64_t times = 1);
  void add(const SizeCounts& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Returns the least size that at least this share of the accesses has at most; 0 if there is no access.
  [[nodiscard]] std::uint64_t quantile(double share) const;
  /// The same for the share of the bytes.
  [[nodiscard]] std::uint64_t quantile_of_bytes(double share) const;
  /// The size that occurs most; the larger one of two. 0 if there is no access.
  [[nodiscard]] std::uint64_t most_frequent() const;
  /// Share of the accesses, and of the bytes, with sizes from `least` to `most`.
  [[nodiscard]] double share(std::uint64_t least, std::uint64_t most) const;
  [[nodiscard]] double share_of_bytes(std::uint64_t least, std::uint64_t most) const;

 private:
  std::map<std::uint64_t, std::uint64_t> counts_;  ///< by size
  std::uint64_t count_ = 0;
  bool is_rounded_ = false;
};

}  // namespace iosig::observe
