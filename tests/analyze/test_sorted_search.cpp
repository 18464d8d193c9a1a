#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "iosig/analyze/sorted_search.h"

using namespace iosig;

TEST_CASE("sorted search: whatever the guess, as many are counted as one by one") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> numbers(random() % 40);
    for (std::int64_t& number : numbers) number = static_cast<std::int64_t>(random() % 64) - 16;
    std::ranges::sort(numbers);
    for (std::int64_t value = -18; value < 50; ++value) {
      const auto up_to =
          static_cast<std::size_t>(std::ranges::count_if(numbers, [&](std::int64_t each) { return each <= value; }));
      CHECK(count_up_to(numbers.data(), numbers.size(), value) == up_to);
      for (const std::size_t guess : {std::size_t{0}, up_to, up_to + 1, numbers.size() / 2, numbers.size(), SIZE_MAX})
        CHECK(count_up_to(numbers.data(), numbers.size(), value, guess) == up_to);
    }
  }
}
