// Counts numbers and tells their percentiles, in little memory however many there are.
//
// Numbers below 128 have a bucket each. Above, each power of two is divided into 64 buckets of equal width, so a bucket
// is at most 1/64 of its numbers wide, and its middle is within 1/128, 0.8 %, of each of them. (HdrHistogram's
// buckets.)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace iosig {

class Distribution {
 public:
  void add(std::uint64_t number);
  /// Adds numbers of which only their sum, the least, the greatest, and the middles of coarser buckets are known, with
  /// the count in each: percentiles are as exact as these then.
  void add_counted(std::uint64_t least, std::uint64_t greatest, double sum,
                   std::span<const std::pair<double, std::uint64_t>> buckets);

  /// Appends the distribution to `bytes`, for a process on the same machine.
  void append_to(std::string& bytes) const;
  /// Adds the numbers of a distribution that append_to() put at the start of `bytes`, and removes it from there.
  /// Returns false, and changes nothing, if `bytes` is too short for one.
  [[nodiscard]] bool merge(std::string_view& bytes);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Exact; 0 if there are no numbers.
  [[nodiscard]] std::uint64_t least() const { return count_ == 0 ? 0 : least_; }
  [[nodiscard]] std::uint64_t greatest() const { return greatest_; }
  [[nodiscard]] double mean() const;

  /// Returns the least number that at least `percent` % of the numbers do not exceed (nearest rank), to within 0.8 %,
  /// and exactly if it is below 128, the least or the greatest. 0 if there are no numbers.
  [[nodiscard]] double percentile(double percent) const;

  /// The middles of the buckets that have numbers, ascending, and how many each has.
  [[nodiscard]] std::vector<std::pair<double, std::uint64_t>> buckets() const;

 private:
  void add_to_bucket(std::uint32_t bucket, std::uint64_t count);

  std::uint64_t count_ = 0, least_ = UINT64_MAX, greatest_ = 0;
  long double sum_ = 0;
  /// Number of the bucket and count, by number. At most 3776: 60 KB.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> buckets_;
};

}  // namespace iosig
