#include "iosig/observe/size_counts.h"

#include <algorithm>
#include <bit>

namespace iosig::observe {
namespace {

constexpr std::size_t max_exact = 64;

/// Keeps the three highest binary digits, rounded to the nearest.
std::uint64_t rounded(std::uint64_t bytes) {
  const auto digits = static_cast<int>(std::bit_width(bytes));
  if (digits <= 3 || digits == 64) return bytes;
  const std::uint64_t unit = std::uint64_t{1} << (digits - 3);
  return (bytes + unit / 2) / unit * unit;
}

}  // namespace

void SizeCounts::add(std::uint64_t bytes, std::uint64_t times) {
  counts_[is_rounded_ ? rounded(bytes) : bytes] += times;
  count_ += times;
  if (is_rounded_ || counts_.size() <= max_exact) return;
  is_rounded_ = true;
  std::map<std::uint64_t, std::uint64_t> coarse;
  for (const auto& [size, number] : counts_) coarse[rounded(size)] += number;
  counts_ = std::move(coarse);
}

void SizeCounts::add(const SizeCounts& other) {
  for (const auto& [size, number] : other.counts_) add(size, number);
}

std::uint64_t SizeCounts::quantile(double share) const {
  std::uint64_t passed = 0;
  for (const auto& [size, number] : counts_)
    if (passed += number; static_cast<double>(passed) >= share * static_cast<double>(count_)) return size;
  return 0;
}

std::uint64_t SizeCounts::quantile_of_bytes(double share) const {
  double all = 0, passed = 0;
  for (const auto& [size, number] : counts_) all += static_cast<double>(size) * static_cast<double>(number);
  for (const auto& [size, number] : counts_)
    if (passed += static_cast<double>(size) * static_cast<double>(number); passed >= share * all) return size;
  return 0;
}

std::uint64_t SizeCounts::most_frequent() const {
  std::uint64_t best = 0, most = 0;
  for (const auto& [size, number] : counts_)
    if (number >= most) best = size, most = number;
  return best;
}

double SizeCounts::share(std::uint64_t least, std::uint64_t most) const {
  std::uint64_t within = 0;
  for (auto at = counts_.lower_bound(least); at != counts_.end() && at->first <= most; ++at) within += at->second;
  return count_ == 0 ? 0 : static_cast<double>(within) / static_cast<double>(count_);
}

double SizeCounts::share_of_bytes(std::uint64_t least, std::uint64_t most) const {
  double all = 0, within = 0;
  for (const auto& [size, number] : counts_) {
    const double bytes = static_cast<double>(size) * static_cast<double>(number);
    all += bytes;
    if (size >= least && size <= most) within += bytes;
  }
  return all == 0 ? 0 : within / all;
}

}  // namespace iosig::observe
