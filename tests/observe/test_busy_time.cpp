#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "iosig/observe/busy_time.h"

using iosig::observe::BusyTime;

namespace {

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

BusyTime of(const Intervals& intervals) {
  BusyTime made;
  for (const auto& [start, end] : intervals) made.add(start, end);
  return made;
}

}  // namespace

TEST_CASE("busy time: what overlaps counts once, what touches is not in flight together") {
  const BusyTime three = of({{0, 10}, {5, 15}, {20, 30}});
  CHECK(three.busy() == 25);
  CHECK(three.total() == 30);
  CHECK(three.most() == 2);
  CHECK(of({{0, 10}, {10, 20}}).most() == 1);
  CHECK(of({{0, 10}, {10, 20}}).busy() == 20);
  CHECK(of({{0, 10}, {2, 3}, {4, 5}}).busy() == 10);
  CHECK(of({{0, 10}, {2, 3}, {4, 5}}).most() == 2);
  CHECK(of({}).most() == 0);
}

TEST_CASE("busy time: an empty interval takes no time, and is in flight at its start") {
  CHECK(of({{5, 5}}).busy() == 0);
  CHECK(of({{5, 5}}).most() == 1);
  CHECK(of({{5, 5}, {5, 5}}).most() == 2);
  CHECK(of({{5, 5}, {6, 6}}).most() == 1);
  CHECK(of({{0, 5}, {5, 5}}).most() == 1);
  CHECK(of({{5, 5}, {5, 6}}).most() == 2);
}

TEST_CASE("busy time: the sweep finds what a look at each moment finds") {
  std::mt19937 random(2);
  for (int turn = 0; turn < 500; ++turn) {
    Intervals intervals(random() % 12);
    for (auto& [start, end] : intervals) {
      start = static_cast<std::int64_t>(random() % 30);
      end = start + static_cast<std::int64_t>(random() % 8);
    }
    std::ranges::sort(intervals, {}, [](const auto& each) { return each.first; });
    std::int64_t busy = 0;
    std::size_t most = 0;
    for (std::int64_t now = 0; now < 40; ++now) {
      const auto inside =
          std::ranges::count_if(intervals, [&](const auto& each) { return each.first <= now && now < each.second; });
      const auto empty =
          std::ranges::count_if(intervals, [&](const auto& each) { return each.first == now && each.second == now; });
      busy += inside > 0 ? 1 : 0;
      most = std::max(most, static_cast<std::size_t>(inside + empty));
    }
    const BusyTime found = of(intervals);
    CHECK(found.busy() == busy);
    CHECK(found.most() == most);
  }
}

TEST_CASE("busy time: times far apart do not overflow") {
  constexpr std::int64_t late = std::int64_t{1} << 62;
  const BusyTime three = of({{0, 100}, {late, late + 10}, {late + 20, late + 30}});
  CHECK(three.busy() == 120);
  CHECK(three.most() == 1);
  const BusyTime long_ones = of({{0, INT64_MAX}, {1, INT64_MAX}, {INT64_MAX, INT64_MAX}});
  CHECK(long_ones.busy() == INT64_MAX);
  CHECK(long_ones.total() == INT64_MAX);  // the greatest that it can tell
  CHECK(long_ones.most() == 2);
}
