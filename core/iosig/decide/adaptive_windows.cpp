#include "iosig/decide/adaptive_windows.h"

#include <cmath>
#include <numeric>

namespace iosig {
namespace {

constexpr double like_share = 0.2;
constexpr double chance_part = 0.4;  ///< half of the mean absolute value of a standard normal number

double sum_of(const std::vector<std::uint64_t>& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

bool are_alike(const std::vector<std::uint64_t>& one, const std::vector<std::uint64_t>& other) {
  const double all_of_one = sum_of(one), all_of_other = sum_of(other);
  if (all_of_one == 0 || all_of_other == 0) return true;
  double distance = 0, by_chance = 0;
  for (std::size_t n = 0; n < one.size(); ++n) {
    const auto here = static_cast<double>(one[n]), there = static_cast<double>(other[n]);
    distance += 0.5 * std::abs(here / all_of_one - there / all_of_other);
    const double share = (here + there) / (all_of_one + all_of_other);
    by_chance += chance_part * std::sqrt(share * (1 / all_of_one + 1 / all_of_other));
  }
  return distance <= like_share + by_chance;
}

}  // namespace

std::vector<std::size_t> joined_windows(std::span<const std::vector<std::uint64_t>> counts) {
  std::vector<std::size_t> ends;
  std::vector<std::uint64_t> joined;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    if (n > 0 && !are_alike(joined, counts[n])) {
      ends.push_back(n - 1);
      joined.clear();
    }
    joined.resize(counts[n].size());
    for (std::size_t region = 0; region < joined.size(); ++region) joined[region] += counts[n][region];
  }
  if (!counts.empty()) ends.push_back(counts.size() - 1);
  return ends;
}

}  // namespace iosig
