#include "iosig/base/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace iosig {
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

struct Head {
  std::uint64_t count, least, greatest, buckets;
  double sum;
};
struct BucketBytes {
  std::uint64_t bucket, count;
};

void append(std::string& bytes, const auto& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void Distribution::add(std::uint64_t number) {
  ++count_;
  least_ = std::min(least_, number);
  greatest_ = std::max(greatest_, number);
  sum_ += static_cast<long double>(number);
  add_to_bucket(bucket_of(number), 1);
}

void Distribution::add_counted(std::uint64_t least, std::uint64_t greatest, double sum,
                               std::span<const std::pair<double, std::uint64_t>> buckets) {
  least_ = std::min(least_, least);
  greatest_ = std::max(greatest_, greatest);
  sum_ += static_cast<long double>(sum);
  for (const auto& [middle, count] : buckets) {
    count_ += count;
    add_to_bucket(bucket_of(std::clamp(static_cast<std::uint64_t>(std::llround(middle)), least, greatest)), count);
  }
}

void Distribution::add_to_bucket(std::uint32_t bucket, std::uint64_t count) {
  const auto place = std::ranges::lower_bound(buckets_, bucket, {}, &std::pair<std::uint32_t, std::uint64_t>::first);
  if (place != buckets_.end() && place->first == bucket)
    place->second += count;
  else
    buckets_.insert(place, {bucket, count});
}

void Distribution::append_to(std::string& bytes) const {
  append(bytes, Head{count_, least_, greatest_, buckets_.size(), static_cast<double>(sum_)});
  for (const auto& [bucket, count] : buckets_) append(bytes, BucketBytes{bucket, count});
}

bool Distribution::merge(std::string_view& bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if ((bytes.size() - sizeof head) / sizeof(BucketBytes) < head.buckets) return false;
  bytes.remove_prefix(sizeof head);
  count_ += head.count;
  least_ = std::min(least_, head.least);
  greatest_ = std::max(greatest_, head.greatest);
  sum_ += static_cast<long double>(head.sum);
  for (; head.buckets > 0; --head.buckets, bytes.remove_prefix(sizeof(BucketBytes))) {
    BucketBytes each{};
    std::memcpy(&each, bytes.data(), sizeof each);
    add_to_bucket(static_cast<std::uint32_t>(each.bucket), each.count);
  }
  return true;
}

std::vector<std::pair<double, std::uint64_t>> Distribution::buckets() const {
  std::vector<std::pair<double, std::uint64_t>> found;
  found.reserve(buckets_.size());
  for (const auto& [bucket, count] : buckets_) found.emplace_back(middle_of(bucket), count);
  return found;
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

}  // namespace iosig
