// Regions and their groups against requests dealt out one by one.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "iosig/analyze/detect.h"
#include "iosig/base/units.h"
#include "iosig/cost/striping.h"
#include "iosig/decide/regions.h"

using namespace iosig;

namespace {

/// Requests and bytes of each length and kind in each region.
using Counts = std::map<std::tuple<std::size_t, std::uint64_t, bool>, std::uint64_t>;

Counts counts_of(const std::vector<Region>& regions) {
  Counts counts;
  for (std::size_t n = 0; n < regions.size(); ++n)
    for (const RequestGroup& group : regions[n].groups) counts[{n, group.length, group.is_write}] += group.count;
  return counts;
}

Counts counts_of(const std::vector<Request>& requests, std::uint64_t region_bytes) {
  Counts counts;
  for (const Request& request : requests)
    for (std::uint64_t at = request.offset, left = request.length; left > 0;) {
      const std::uint64_t some = std::min(left, region_bytes - at % region_bytes);
      ++counts[{at / region_bytes, some, request.is_write}];
      at += some;
      left -= some;
    }
  return counts;
}

Pattern pattern_of(const std::vector<Request>& requests, bool allows_exceptions = true) {
  DetectOptions options;
  options.columns = 2;
  options.allows_exceptions = allows_exceptions;
  Detector detector(options);
  for (const Request& request : requests)
    detector.push(std::array{static_cast<std::int64_t>(request.offset), static_cast<std::int64_t>(request.length)});
  Pattern pattern = detector.finish();
  pattern.kinds[0] = Column::logical;
  pattern.kinds[1] = Column::length;
  return pattern;
}

/// i < 30: 20 requests, and one odd request after each row.
std::vector<Request> nested() {
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 30; ++i) {
    for (std::uint64_t j = 0; j < 20; ++j) requests.push_back({.offset = 80000 - 1500 * i + 700 * j, .length = 300});
    requests.push_back({.offset = 500 * i, .length = 40});
  }
  return requests;
}

}  // namespace

TEST_CASE("regions: fixed ones cover the file; the last is shorter") {
  CHECK(fixed_regions(250, 100)->ends == std::vector<std::uint64_t>{100, 200, 250});
  CHECK(fixed_regions(200, 100)->ends == std::vector<std::uint64_t>{100, 200});
  CHECK(fixed_regions(0, 100)->ends.empty());
  CHECK(fixed_regions(1, 0).error().kind == ErrorKind::usage);
  CHECK(fixed_regions(max_bytes, MiB).error().kind == ErrorKind::usage);
  CHECK(fixed_regions(100 * GiB)->ends.size() == 1600);
}

TEST_CASE("regions: requests that cross regions are divided, and none is lost") {
  std::mt19937_64 random(9);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  std::vector<Request> requests;
  for (int n = 0; n < 3000; ++n)
    requests.push_back({.offset = random() % 9000, .length = random() % 4 * 300, .is_write = random() % 2 == 0});
  RegionCollector collector(*fixed_regions(10000, 1000));
  REQUIRE(collector.add(requests));
  CHECK(collector.outside() == 0);
  // Many odd lengths: beyond 64 in a region they are rounded, so only counts of requests are exact.
  std::map<std::size_t, std::uint64_t> found, expected;
  for (const auto& [key, count] : counts_of(collector.regions())) found[std::get<0>(key)] += count;
  for (const auto& [key, count] : counts_of(requests, 1000)) expected[std::get<0>(key)] += count;
  CHECK(found == expected);
}

TEST_CASE("regions: a progression stays one, in any order; other requests keep their places") {
  RegionCollector collector(*fixed_regions(10000, 10000));
  REQUIRE(collector.add(std::vector<Request>{{500, 50}, {100, 50}, {300, 50}}));
  CHECK(collector.regions()[0].groups ==
        std::vector<RequestGroup>{{.offset = 100, .length = 50, .stride = 200, .count = 3}});
  REQUIRE(collector.add(std::vector<Request>{{300, 50}, {100, 50}, {500, 50}}));
  CHECK(collector.regions()[0].groups ==
        std::vector<RequestGroup>{{.offset = 100, .length = 50, .stride = 200, .count = 6, .places = 3}});
  REQUIRE(collector.add(std::vector<Request>{{150, 50}}));
  CHECK(collector.regions()[0].groups == std::vector<RequestGroup>{{.offset = 100, .length = 50, .count = 2},
                                                                   {.offset = 150, .length = 50},
                                                                   {.offset = 300, .length = 50, .count = 2},
                                                                   {.offset = 500, .length = 50, .count = 2}});
  REQUIRE(collector.add(std::vector<Request>{{0, 0}, {9990, 20}}));  // one empty, one that ends outside
  CHECK(collector.regions()[0].groups.back() == RequestGroup{.offset = 9990, .length = 10});
  CHECK(collector.outside() == 1);
}

TEST_CASE("regions: a hot part of a region is told from the rest, and chance is not") {
  std::mt19937_64 random(5);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  std::vector<Request> hot, even;
  for (int n = 0; n < 4000; ++n) {
    even.push_back({.offset = random() % 16384 * 4096, .length = 4096});
    hot.push_back(n % 10 == 0 ? even.back() : Request{.offset = 7 * MiB + random() % 256 * 4096, .length = 4096});
  }
  const auto groups_of = [](const std::vector<Request>& requests) {
    RegionCollector collector(*fixed_regions(64 * MiB));
    REQUIRE(collector.add(requests));
    return collector.regions()[0].groups;
  };
  const std::vector<RequestGroup> whole = groups_of(even), parts = groups_of(hot);
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].count == 4000);
  CHECK(whole[0].stride == 4096);
  CHECK(whole[0].places > 16300);  // of 16384, but for what chance leaves at both ends
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].offset == 7 * MiB);
  CHECK(parts[1].places >= 256);
  CHECK(parts[1].places < 260);  // a neighbour that chance used as often
  CHECK(parts[1].count > 3600);
  CHECK(parts[0].count + parts[1].count + parts[2].count == 4000);
}

TEST_CASE("regions: the end of the largest file, and beyond") {
  RegionCollector collector(RegionBounds{{max_bytes}});
  CHECK(collector.add(std::vector<Request>{{.offset = max_bytes - 10, .length = 10}}));
  CHECK(collector.add(std::vector<Request>{{.offset = max_bytes - 10, .length = 11}}).error().kind ==
        ErrorKind::bad_input);
  CHECK_FALSE(collector.add(std::vector<Request>{{.offset = std::uint64_t{1} << 63U, .length = 1}}));
  CHECK_FALSE(collector.add(RequestGroup{.length = 1, .stride = max_bytes / 2, .count = 5}));
  CHECK_FALSE(collector.add(RequestGroup{.length = 1, .stride = 1, .count = ~std::uint64_t{0}}));
}

TEST_CASE("regions: a progression's and a pattern's counts are those of its requests") {
  std::vector<Request> requests;
  for (std::uint64_t n = 0; n < 500; ++n) requests.push_back({.offset = 77 + n * 131, .length = 90});
  RegionCollector whole(*fixed_regions(100000, 1000)), folded(*fixed_regions(100000, 1000));
  REQUIRE(whole.add(RequestGroup{.offset = 77, .length = 90, .stride = 131, .count = 500}));
  CHECK(counts_of(whole.regions()) == counts_of(requests, 1000));
  REQUIRE(folded.add(pattern_of(nested()), false));
  CHECK(counts_of(folded.regions()) == counts_of(nested(), 1000));
  std::vector<Request> broken = nested();  // an exception in the nest, literals behind it
  broken[333].offset += 4321;
  for (std::uint64_t n = 0; n < 20; ++n) broken.push_back({.offset = n * n * n, .length = 10 + n});
  const Pattern pattern = pattern_of(broken);
  CHECK_FALSE(pattern.exception_positions.empty());
  RegionCollector odd(*fixed_regions(100000, 1000));
  REQUIRE(odd.add(pattern, false));
  CHECK(counts_of(odd.regions()) == counts_of(broken, 1000));
}

TEST_CASE("regions: a billion accesses by their pattern, negative numbers refused") {
  Pattern pattern;  // i < 1000 { j < 1000000 { (64 MB i + 64 j, 64) } }
  pattern.columns = 2;
  pattern.kinds = {Column::logical, Column::length};
  pattern.nodes = {{true, 3, 0}, {true, 3, 1}, {false, 3, 3}};
  pattern.numbers = {1000, 1000000, 0, 0, std::int64_t{64} << 20, 64, 64, 0, 0};
  pattern.terms = {{true, 0, 1000000000, 0}};
  REQUIRE(checked(pattern));
  RegionCollector collector(*fixed_regions(1000 * default_region_bytes));
  REQUIRE(collector.add(pattern, true));
  const std::vector<Region> regions = collector.regions();
  CHECK(regions.size() == 1000);
  for (const Region& region : regions)
    CHECK(region.groups == std::vector<RequestGroup>{{.length = 64, .stride = 64, .count = 1000000, .is_write = true}});
  // One of the billion elsewhere: 32 bytes at 5.
  pattern.exception_positions = {1500000};
  pattern.exception_values = {5, 32};
  RegionCollector other(*fixed_regions(1000 * default_region_bytes));
  REQUIRE(other.add(pattern, true));
  CHECK(other.regions()[1].groups[0].count == 999999);
  CHECK(other.regions()[0].groups[1] == RequestGroup{.offset = 5, .length = 32, .is_write = true});
  pattern.numbers[3] = -100;  // the first offset
  CHECK(collector.add(pattern, true).error().kind == ErrorKind::bad_input);
  CHECK(collector.add(Pattern{}, true).error().kind == ErrorKind::bad_input);
}

TEST_CASE("regions: those with equal length and groups are equal, wherever they lie") {
  const RequestGroup reads{.offset = 0, .length = 4, .stride = 8, .count = 2}, more{.length = 4, .count = 3};
  RequestGroup scattered = reads, writes = reads;
  scattered.places = 2;
  writes.is_write = true;
  const std::vector<Region> regions{{0, 0, 64, {reads}},        {0, 64, 64, {more}}, {1, 0, 64, {reads}},
                                    {1, 64, 32, {reads}},       {1, 96, 64, {}},     {0, 128, 64, {scattered}},
                                    {0, 192, 64, {writes}},     {0, 256, 64, {}},    {0, 320, 64, {reads, more}},
                                    {0, 384, 64, {more, reads}}};
  CHECK(first_equal_regions(regions) == std::vector<std::size_t>{0, 1, 0, 3, 4, 5, 6, 4, 8, 9});
}

TEST_CASE("adaptive regions: cut where the hotness changes, not where chance does") {
  std::mt19937_64 random(11);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  std::vector<Request> requests;
  for (int n = 0; n < 20000; ++n) {
    const std::uint64_t unit = n % 2 == 0 ? 10 + random() % 5 : random() % 100;  // units 10 to 14 are hot
    requests.push_back({.offset = unit * MiB + random() % 256 * 4096, .length = 4096});
  }
  RegionCollector units(*fixed_regions(100 * MiB, default_unit_bytes));
  REQUIRE(units.add(requests));
  CHECK(adaptive_regions(units.regions()).ends ==
        std::vector<std::uint64_t>{10 * MiB, 15 * MiB, 79 * MiB, 100 * MiB});  // 64 MB at most
  CHECK(adaptive_regions({}).ends.empty());
}

TEST_CASE("adaptive regions: units with other request lengths are regions of their own") {
  std::vector<Request> requests;
  for (std::uint64_t n = 0; n < 2560; ++n) requests.push_back({.offset = n * 4096, .length = n < 1280 ? 4096U : 512U});
  RegionCollector units(*fixed_regions(10 * MiB, default_unit_bytes));
  REQUIRE(units.add(requests));
  CHECK(adaptive_regions(units.regions()).ends == std::vector<std::uint64_t>{5 * MiB, 10 * MiB});
}
