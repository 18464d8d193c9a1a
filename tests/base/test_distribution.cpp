#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/distribution.h"

using iosig::Distribution;

namespace {

Distribution of(const std::vector<std::uint64_t>& numbers) {
  Distribution made;
  for (const std::uint64_t number : numbers) made.add(number);
  return made;
}

}  // namespace

TEST_CASE("distribution: a percentile is the least number that so many do not exceed") {
  const Distribution four = of({40, 10, 30, 20});
  CHECK(four.least() == 10);
  CHECK(four.greatest() == 40);
  CHECK(four.mean() == 25);
  CHECK(four.percentile(0) == 10);
  CHECK(four.percentile(25) == 10);
  CHECK(four.percentile(25.1) == 20);
  CHECK(four.percentile(50) == 20);
  CHECK(four.percentile(75) == 30);
  CHECK(four.percentile(100) == 40);
  std::vector<std::uint64_t> hundred;
  for (std::uint64_t n = 1; n <= 100; ++n) hundred.push_back(n);
  for (std::uint64_t n = 1; n <= 100; ++n)
    CHECK(of(hundred).percentile(static_cast<double>(n)) == static_cast<double>(n));
  CHECK(Distribution().percentile(50) == 0);
}

TEST_CASE("distribution: percentiles of numbers of any size are within 0.8 %") {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers{0, UINT64_MAX, UINT64_MAX - 1};
  while (numbers.size() < 20'000) numbers.push_back(random() >> (random() % 64));
  const Distribution found = of(numbers);
  std::ranges::sort(numbers);
  for (const double percent : {0.0, 0.1, 1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<std::size_t>(std::max(std::ceil(percent / 100 * 20'000), 1.0));
    const auto exact = static_cast<double>(numbers[rank - 1]);
    CHECK(std::abs(found.percentile(percent) - exact) <= 0.008 * exact);
  }
}

TEST_CASE("distribution: those of two processes merge into that of all their numbers") {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> first(300), second(500);
  for (auto& number : first) number = random() >> random() % 60;
  for (auto& number : second) number = random() >> random() % 60;
  std::vector<std::uint64_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  std::string bytes;
  of(first).append_to(bytes);
  of(second).append_to(bytes);
  std::string_view rest = bytes;
  Distribution merged;
  REQUIRE(merged.merge(rest));
  REQUIRE(merged.merge(rest));
  CHECK(rest.empty());
  CHECK_FALSE(merged.merge(rest));
  const Distribution expected = of(all);
  CHECK(merged.count() == 800);
  CHECK(merged.mean() == doctest::Approx(expected.mean()));
  for (const double percent : {0.0, 1.0, 50.0, 99.0, 100.0})
    CHECK(merged.percentile(percent) == expected.percentile(percent));
}
