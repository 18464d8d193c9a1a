#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "iosig/trace/column_loops.h"

using namespace iosig::trace;

namespace {

using Random = std::mt19937_64;

/// Values of a column as they occur: multiples of a number, small ones, and ones of all 64 bits.
std::vector<std::uint64_t> values_of(Random& random, std::size_t count) {
  const std::uint64_t kinds = 1 + random() % 3, unit = 1 + random() % 60;
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values) {
    const std::uint64_t small = random() % 1000;
    value = random() % kinds == 0 ? small * unit : random() % 2 == 0 ? 0 - small : random();
  }
  return values;
}

std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
  REQUIRE(inverse * odd == 1);
  return inverse;
}

}  // namespace

TEST_CASE("column loops: each survey finds the least, the greatest, the zeros, and columns of one value") {
  Random random(1);
  for (std::size_t count = 1; count < 70; ++count)
    for (int repetition = 0; repetition < 50; ++repetition) {
      std::vector<std::uint64_t> values = values_of(random, count);
      if (repetition % 5 == 0) std::ranges::fill(values, repetition % 2 == 0 ? 0 : values[0]);
      if (repetition % 10 == 0) values[random() % count] += random() % 2;
      const auto is_less = [](std::uint64_t a, std::uint64_t b) {
        return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
      };
      for (const ColumnLoops& loops : all_column_loops()) {
        const ColumnSurvey seen = loops.survey(values);
        REQUIRE(seen.least == static_cast<std::int64_t>(*std::ranges::min_element(values, is_less)));
        REQUIRE(seen.greatest == static_cast<std::int64_t>(*std::ranges::max_element(values, is_less)));
        REQUIRE(seen.others == count - static_cast<std::size_t>(std::ranges::count(values, std::uint64_t{0})));
        REQUIRE(seen.is_constant == (std::ranges::count(values, values[0]) == static_cast<std::ptrdiff_t>(count)));
      }
    }
}

TEST_CASE("column loops: each division gives the quotients of multiples, and counts what else there is") {
  Random random(2);
  for (std::size_t count = 1; count < 70; ++count)
    for (const std::uint64_t divisor : {1, 2, 8, 26, 13, 4096, 1'000'000'007}) {
      unsigned twos = 0;
      while ((divisor >> twos) % 2 == 0) ++twos;
      const std::uint64_t base = random() % 2 == 0 ? 0 : random(), greatest = UINT64_MAX / divisor;
      const ColumnDivision by{.base = base,
                              .inverse = inverse_of(divisor >> twos),
                              .twos = twos,
                              .limit = random() % 2 == 0 ? greatest : std::min<std::uint64_t>(greatest, 500)};
      std::vector<std::uint64_t> values = values_of(random, count), expected(count);
      std::uint32_t above = 0;
      for (std::size_t n = 0; n < count; ++n) {
        if (random() % 2 == 0) values[n] = base + random() % 1000 * divisor;
        const std::uint64_t distance = values[n] - base, quotient = distance / divisor;
        const bool is_quotient = distance % divisor == 0 && quotient <= by.limit;
        expected[n] = is_quotient ? quotient : 0;
        above += is_quotient ? 0 : 1;
      }
      for (const ColumnLoops& loops : all_column_loops()) {
        std::vector<std::uint64_t> quotients(count);
        REQUIRE(loops.divide(values, by, quotients.data()) == above);
        REQUIRE(quotients == expected);
      }
    }
}
