// Patterns: what they stand for, counted, walked and reached at random, held against plain nested loops.
#include <doctest/doctest.h>

#include "iosig/model/nest.h"
#include "iosig/model/pattern.h"
#include "iosig/model/pattern_builder.h"
#include "iosig/model/pattern_cursor.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

Pattern nest_pattern(std::uint32_t columns, std::vector<Node> nodes, std::vector<std::int64_t> numbers,
                     std::uint64_t count) {
  PatternBuilder builder(columns, follows_none);
  builder.add_nest(nodes, numbers, count);
  return builder.finish();
}

/// Element by element, forwards from everywhere, and counted.
void agrees(const Pattern& pattern, const std::vector<std::int64_t>& vectors) {
  REQUIRE_MESSAGE(checked(pattern), checked(pattern).error().message);
  const std::uint32_t columns = pattern.columns;
  REQUIRE(pattern.count() * columns == vectors.size());
  CHECK(*expanded(pattern) == vectors);
  const PatternIndex index(pattern);
  std::vector<std::int64_t> one(columns);
  for (std::uint64_t n = 0; n < pattern.count(); ++n) {
    index.element(n, one);
    REQUIRE(std::equal(one.begin(), one.end(), vectors.begin() + static_cast<std::ptrdiff_t>(n * columns)));
  }
  for (std::uint64_t from = 0; from <= pattern.count(); from += 1 + pattern.count() / 7) {
    PatternCursor cursor(index, from);
    for (std::uint64_t n = from; n < pattern.count(); ++n) {
      REQUIRE(cursor.next(one));
      REQUIRE(std::equal(one.begin(), one.end(), vectors.begin() + static_cast<std::ptrdiff_t>(n * columns)));
    }
    CHECK_FALSE(cursor.next(one));
  }
}

}  // namespace

TEST_CASE("pattern: the header's example stands for its nine vectors") {
  // for i < 3 { for j < 2 + i { (100 i + 8 j, 8) } }
  const Pattern pattern =
      nest_pattern(2, {{true, 3, 0}, {true, 3, 1}, {false, 3, 3}}, {3, 2, 1, 0, 100, 8, 8, 0, 0}, 9);
  agrees(pattern, {0, 8, 8, 8, 100, 8, 108, 8, 116, 8, 200, 8, 208, 8, 216, 8, 224, 8});
  CHECK(count_before(pattern, 0, {}, 2) == 5);
  CHECK(count_before(pattern, 1, std::array<std::int64_t, 1>{2}, 3) == 3);
}

TEST_CASE("pattern: a simplex of four loops is counted in closed form") {
  // i < n, j < n - i, k < n - i - j, l < n - i - j - k: C(n + 3, 4) elements
  const auto simplex = [](std::int64_t n) {
    return nest_pattern(1, {{true, 5, 0}, {true, 5, 1}, {true, 5, 3}, {true, 5, 6}, {false, 5, 10}},
                        {n, n, -1, n, -1, -1, n, -1, -1, -1, 0, 1000, 100, 10, 1},
                        static_cast<std::uint64_t>(static_cast<__int128>(n) * (n + 1) * (n + 2) / 6 * (n + 3) / 4));
  };
  std::vector<std::int64_t> vectors;
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 6 - i; ++j)
      for (std::int64_t k = 0; k < 6 - i - j; ++k)
        for (std::int64_t l = 0; l < 6 - i - j - k; ++l) vectors.push_back(1000 * i + 100 * j + 10 * k + l);
  agrees(simplex(6), vectors);
  const Pattern large = simplex(100000);
  CHECK(large.count() == 4166916671250025000u);  // C(100003, 4)
  CHECK(checked(large));
  std::int64_t last = 0;
  PatternIndex(large).element(large.count() - 1, std::span(&last, 1));
  CHECK(last == 99999000);
}

TEST_CASE("pattern: random nests are what plain loops say, element by element") {
  Random random(1);
  for (int n = 0; n < 300; ++n) {
    const GeneratedNest nest = generated_nest(random);
    if (nest.count == 0 || nest.count > 3000) continue;
    Pattern pattern = nest_pattern(nest.columns, nest.nodes, nest.numbers, nest.count);
    if (!checked(pattern)) continue;
    agrees(pattern, nest.vectors);
  }
}

TEST_CASE("pattern: a column that follows another one is its running sum, through nests, literals and exceptions") {
  Random random(2);
  for (int n = 0; n < 100; ++n) {
    const GeneratedNest nest = generated_nest(random);
    if (nest.count < 2 || nest.count > 500 || nest.columns < 2) continue;
    std::array<std::int8_t, max_columns> follows = follows_none;
    follows[nest.columns - 1] = 0;
    PatternBuilder builder(nest.columns, follows);
    std::vector<std::int64_t> stored;
    const auto literal = [&] {
      std::vector<std::int64_t> vector(nest.columns);
      for (std::int64_t& value : vector) value = random.below(1000);
      builder.add_literal(vector.data());
      stored.insert(stored.end(), vector.begin(), vector.end());
    };
    literal();
    literal();
    builder.add_nest(nest.nodes, nest.numbers, nest.count);
    std::vector<std::int64_t> inside = nest.vectors;
    std::vector<std::int64_t> exception(nest.columns, 77);
    const auto at = static_cast<std::uint64_t>(random.below(static_cast<std::int64_t>(nest.count)));
    builder.add_exception(2 + at, exception.data());
    std::copy(exception.begin(), exception.end(), inside.begin() + static_cast<std::ptrdiff_t>(at * nest.columns));
    stored.insert(stored.end(), inside.begin(), inside.end());
    literal();
    const std::uint32_t last = nest.columns - 1;
    std::vector<std::int64_t> vectors = stored;
    for (std::size_t v = nest.columns; v < vectors.size(); v += nest.columns)
      vectors[v + last] += vectors[v - 1] + vectors[v - nest.columns];
    const Pattern pattern = builder.finish();
    if (checked(pattern)) agrees(pattern, vectors);
  }
}

TEST_CASE("pattern: the paper's prediction of section 4.2") {
  // [0,(3,4,7)^2]: r |d| numbers here, so 28 comes next; the paper has r |d| + 1 and begins with 31.
  const Pattern pattern =
      nest_pattern(1, {{true, 4, 0}, {false, 2, 1}, {false, 3, 3}, {false, 4, 5}}, {2, 0, 14, 3, 14, 7, 14}, 6);
  CHECK(*expanded(pattern) == std::vector<std::int64_t>{0, 3, 7, 14, 17, 21});
  CHECK(predicted(pattern, 4) == std::vector<std::int64_t>{28, 31, 35, 42});
}

TEST_CASE("pattern: what does not stand for a sequence is refused") {
  const auto refused = [](Pattern pattern) { return checked(pattern) ? "" : checked(pattern).error().message; };
  const auto strided = [](std::int64_t trips, std::int64_t first, std::int64_t stride, std::uint64_t count) {
    return nest_pattern(1, {{true, 2, 0}, {false, 2, 1}}, {trips, first, stride}, count);
  };
  CHECK(refused(strided(3, 0, 1, 3)).empty());
  CHECK(refused(strided(3, 0, 1, 4)).find("count") != std::string::npos);
  CHECK(refused(strided(0, 0, 1, 1)).find("never turns") != std::string::npos);
  CHECK(refused(strided(-1, 0, 1, 1)).find("below 0") != std::string::npos);
  CHECK(refused(strided(2, INT64_MAX - 1, 1, 2)).empty());
  CHECK(refused(strided(3, INT64_MAX - 1, 1, 3)).find("64 bits") != std::string::npos);
  CHECK(refused(strided(2, INT64_MIN, INT64_MAX, 2)).empty());
  CHECK(refused(strided(INT64_MAX, 0, 1, INT64_MAX)).empty());
  // for i < 2 { for j < 2^62 - i 2^62 ... }: one element after 2^62 empty turns
  Pattern idle = nest_pattern(1, {{true, 4, 0}, {true, 4, 1}, {true, 4, 3}, {false, 4, 6}},
                              {2, 1 << 20, -(1 << 20) + 1, 0, 1, 0, 0, 0, 0, 0}, 1);
  CHECK(refused(idle).find("1000 iterations") != std::string::npos);
  Pattern gap = strided(3, 0, 1, 3);
  gap.terms[0].first = 1;
  CHECK_FALSE(refused(gap).empty());
  Pattern outside = strided(3, 0, 1, 3);
  outside.exception_positions = {3};
  outside.exception_values = {9};
  CHECK(refused(outside).find("outside") != std::string::npos);
  Pattern loose = strided(3, 0, 1, 3);
  loose.numbers.push_back(1);
  CHECK_FALSE(refused(loose).empty());
}
