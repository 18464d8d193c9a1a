#include "iosig/observe/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace iosig::observe {
namespace {

constexpr unsigned step_bits = 6;  ///< 64 buckets for each power of two
constexpr std::uint64_t exact_limit = std::uint64_t{2} << step_bits;

std::uint32_t bucket_of(std::uint64_t number) {
  if (number < exact_limit) return static_cast<std::uint32_t>(number);
  const auto shift = static_cast<unsigned>(std::bit_width(number)) - step_bits - 1;
  return (shift << step_bits) + static_cast<std::uint32_t>(number >> shift);
}

double middle_of(std::uint32_t bucket) {
  if (bucket < exact_limit) return bucket;
  const unsigned shift = (bucket >> step_bits) - 1;
  const std::uint64_t first = std::uint64_t{bucket - (shift << step_bits)} << shift;
  return static_cast<double>(first) + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
}

}  // namespace

void Distribution::add(std::uint64_t number) {
  ++count_;
  least_ = std::min(least_, number);
  greatest_ = std::max(greatest_, number);
  sum_ += static_cast<long double>(number);
  const std::uint32_t bucket = bucket_of(number);
  const auto place = std::ranges::lower_bound(buckets_, bucket, {}, &std::pair<std::uint32_t, std::uint64_t>::first);
  if (place != buckets_.end() && place->first == bucket)
    ++place->second;
  else
    buckets_.insert(place, {bucket, 1});
}

double Distribution::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_ / static_cast<long double>(count_));
}

double Distribution::percentile(double percent) const {
  if (count_ == 0) return 0;
  // Without the tolerance, 29 % of 100 numbers would be the 30th: 0.29 * 100 > 29.
  const double wanted = std::ceil(percent / 100 * static_cast<double>(count_) * (1 - 1e-12));
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, count_);
  if (rank == 1) return static_cast<double>(least_);
  if (rank == count_) return static_cast<double>(greatest_);
  std::uint64_t passed = 0;
  for (const auto& [bucket, count] : buckets_) {
    passed += count;
    if (passed >= rank)
      return std::clamp(middle_of(bucket), static_cast<double>(least_), static_cast<double>(greatest_));
  }
  return static_cast<double>(greatest_);
}

}  // namespace iosig::observe
