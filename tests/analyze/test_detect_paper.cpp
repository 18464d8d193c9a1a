// Every worked example of the paper, with its slips, on Algorithm 1 and on our detector.
#include <doctest/doctest.h>

#include "iosig/analyze/detect.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/model/pattern_cursor.h"
#include "iosig/model/pattern_unit.h"
#include "support/nests.h"

using namespace iosig;
using namespace iosig::testing;

namespace {

using Numbers = std::vector<std::int64_t>;

/// "[0,(3, 4, 7)^3] [42,(4)^4]".
std::string units_text(const Pattern& pattern) {
  const auto units = units_of(pattern);
  REQUIRE(units);
  std::string text;
  for (const PatternUnit& unit : *units) text += (text.empty() ? "" : " ") + unit_text(unit);
  return text;
}

Numbers expanded_units(const std::vector<PatternUnit>& units) { return *expanded(*pattern_of(units)); }

/// Of units read as the paper's Fig. 7 does, with r |d| + 1 numbers; each begins where the one before ends.
Numbers expanded_closed(const std::vector<PatternUnit>& units) {
  Numbers numbers;
  for (const PatternUnit& unit : units) {
    numbers.push_back(unit.first);
    for (std::uint64_t r = 0; r < unit.repetitions; ++r)
      for (const std::int64_t delta : unit.deltas) numbers.push_back(numbers.back() + delta);
  }
  return numbers;
}

}  // namespace

TEST_CASE("paper, section 2.3: (0, 4), (5, 4), (10, 4), (15, 4) is one strided pattern") {
  const Numbers accesses = {0, 4, 5, 4, 10, 4, 15, 4};
  for (const Pattern& pattern : {detect(accesses, {.columns = 2}), detect_paper(accesses, {.columns = 2})}) {
    CHECK(pattern.terms.size() == 1);
    CHECK(pattern.numbers == Numbers{4, 0, 5, 4, 0});
  }
}

TEST_CASE("paper, Fig. 7: (5, 7, 10, 12, 15) is [5,(2,3)^2] with r |d| + 1 numbers, which Fig. 8 does not mean") {
  const std::vector<PatternUnit> ours = from_closed({5, {2, 3}, 2});
  CHECK(expanded_units(ours) == Numbers{5, 7, 10, 12, 15});
  CHECK(ours == std::vector<PatternUnit>{{5, {2, 3}, 2}, {15, {0}, 1}});
  CHECK(units_text(detect_paper(Numbers{5, 7, 10, 12, 15}, {})) == "[5,(2, 3)^2] [15,(0)^1]");
}

TEST_CASE("paper, Fig. 8: logical offsets of process 0 are [0,(3,4,7)^3], [42,(4)^4]: r |d| numbers") {
  const Numbers offsets = {0, 3, 7, 14, 17, 21, 28, 31, 35, 42, 46, 50, 54};
  CHECK(units_text(detect_paper(offsets, {})) == "[0,(3, 4, 7)^3] [42,(4)^4]");
  CHECK(units_text(detect(offsets, {})) == "[0,(3, 4, 7)^3] [42,(4)^4]");
}

TEST_CASE("paper, Fig. 9: pattern A, looked up: position 7 of (29, 2, 16) is off by one delta") {
  // read(off=29): row 2, remainder 1, which is "in the 1st delta", so position 2 x 3 + 0 = 6 counted from 0; the paper
  // prints "pos = 7", counted from 1, and "logical offset 29", which is the request's: the element begins at 28.
  const Pattern a = *pattern_of(std::vector<PatternUnit>{{0, {3, 4, 7}, 3}});
  std::int64_t value = 0;
  PatternIndex(a).element(6, std::span(&value, 1));
  CHECK(value == 28);
}

TEST_CASE(
    "paper, Figs. 10 to 12: [1000,(30)^A], [10,(0)^A], [0,(10)^A] is one nest over logical, length and physical") {
  constexpr std::int64_t a = 8;
  Numbers accesses;
  for (std::int64_t i = 0; i < a; ++i) accesses.insert(accesses.end(), {1000 + 30 * i, 10, 10 * i});
  const Pattern pattern = detect(accesses, {.columns = 3});
  CHECK(pattern.terms.size() == 1);
  CHECK(pattern.numbers == Numbers{a, 1000, 30, 10, 0, 0, 10});
  // The ids [4,7,6,2,8,9,4,7,6,2,8,9] of Fig. 12 are one pattern once they come a third time.
  const Numbers ids = {4, 7, 6, 2, 8, 9, 4, 7, 6, 2, 8, 9, 4, 7, 6, 2, 8, 9};
  CHECK(units_text(detect(ids, {})) == "[4,(3, -1, -4, 6, 1, -5)^3]");
  CHECK(units_text(detect_paper(Numbers(ids.begin(), ids.begin() + 13), {})) ==
        "[4,(3, -1, -4, 6, 1, -5)^2] [4,(0)^1]");
}

TEST_CASE("paper, section 4.2: after [0,(3,4,7)^2] come 31, 35, 42 if its 7 numbers end with 28") {
  const Pattern closed = *pattern_of(from_closed({0, {3, 4, 7}, 2}));
  CHECK(*expanded(closed) == Numbers{0, 3, 7, 14, 17, 21, 28});
  CHECK(predicted(closed, 3) == Numbers{31, 35, 42});
}

TEST_CASE("paper, Fig. 18: patterns 1, 2 and 3 that repeat as a whole are a pattern tree") {
  Numbers offsets;
  for (std::int64_t k = 0; k < 20; ++k) {
    for (std::int64_t i = 0; i < 9; ++i) offsets.push_back(1000000 * k + 10 * i);
    for (std::int64_t i = 0; i < 5; ++i) offsets.push_back(1000000 * k + 50000 + 77 * i);
    for (std::int64_t i = 0; i < 13; ++i) offsets.push_back(1000000 * k + 90000 + 1000 * i);
  }
  const Pattern tree = detect(offsets, {});
  CHECK(tree.terms.size() == 1);
  CHECK(tree.nodes.size() == 7);  // the loop over three loops, a leaf in each
  CHECK_FALSE(units_of(tree));
}

TEST_CASE("paper: descriptions are linear in the outer loop, and a larger window can make them worse") {
  Numbers rows;
  for (std::int64_t y = 0; y < 50; ++y)
    for (std::int64_t x = 0; x < 40; ++x) rows.push_back(1000 * y + 8 * x);
  CHECK(detect_paper(rows, {.window = 16}).terms.size() >= 50);
  CHECK(detect(rows, {}).terms.size() == 1);
}

TEST_CASE("paper: Algorithm 1 loses nothing, last number included, whatever comes and whatever the window is") {
  Random random(9);
  for (int n = 0; n < 400; ++n) {
    const GeneratedNest nest = generated_nest(random);
    std::vector<std::int64_t> vectors = nest.vectors;
    for (int v = 0; v < 20; ++v)
      for (std::uint32_t column = 0; column < nest.columns; ++column)
        vectors.push_back(random.chance(10) ? INT64_MIN : random.below(3));
    const Pattern pattern =
        detect_paper(vectors, {.columns = nest.columns, .window = static_cast<std::uint32_t>(1 + random.below(100))});
    REQUIRE_MESSAGE(checked(pattern), checked(pattern).error().message);
    REQUIRE(*expanded(pattern) == vectors);
  }
  CHECK(detect_paper({}, {}).count() == 0);
  CHECK(*expanded(detect_paper(Numbers{5}, {})) == Numbers{5});
}

TEST_CASE("pattern units: both conventions stand for the same numbers") {
  Random random(10);
  for (int n = 0; n < 500; ++n) {
    PatternUnit unit{random.below(100), {}, static_cast<std::uint64_t>(random.below(5))};
    for (std::int64_t d = 1 + random.below(4); d > 0; --d) unit.deltas.push_back(random.below(20) - 10);
    CHECK(expanded_units(from_closed(unit)) == expanded_closed({unit}));
    CHECK(expanded_closed(to_closed(unit)) == expanded_units({unit}));
  }
  CHECK_FALSE(pattern_of(std::vector<PatternUnit>{{INT64_MAX, {1}, 2}}));
  CHECK_FALSE(pattern_of(std::vector<PatternUnit>{{0, {}, 2}}));
}
