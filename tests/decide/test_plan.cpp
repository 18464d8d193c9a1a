// Plans from requests: windows, regions, and what the two algorithms make of them.
#include <doctest/doctest.h>

#include <random>

#include "iosig/base/units.h"
#include "iosig/decide/plan.h"
#include "iosig/decide/plan_current.h"
#include "iosig/model/pattern_builder.h"

using namespace iosig;

namespace {

DescribedServers unlike_servers(std::optional<std::uint64_t> fast_bytes) {
  DescribedServers made;
  made.servers.classes = {{"hdd", 12, {8e-3, 1e-8}, {8e-3, 1e-8}, {}},
                          {"ssd", 4, {1e-4, 4e-9}, {1.5e-4, 5.6e-9}, fast_bytes}};
  made.servers.network = {1e-4, 1 / 117e6};
  made.servers.processes = 32;
  made.names = {std::vector<std::string>(12, "h"), std::vector<std::string>(4, "s")};
  return made;
}

/// `count` reads of 512 KB in each of two windows of 600 s: 7 of 10 in region 3, then 11, the others anywhere.
PlanInput moving_spot(std::uint64_t count) {
  PlanCollector collector;
  for (std::uint64_t n = 0; n < 2 * count; ++n) {
    const std::uint64_t hot = n < count ? 3 : 11, region = n % 10 < 7 ? hot : n * 7 % 16;
    REQUIRE(collector.add("/data/field", {region * 64 * MiB + n * 512 * KiB % (64 * MiB), 512 * KiB, false,
                                          600.0 * static_cast<double>(n) / static_cast<double>(count)}));
  }
  return collector.finish({}).value();
}

std::uint64_t requests_of(const std::vector<Region>& regions) {
  std::uint64_t requests = 0;
  for (const Region& region : regions)
    for (const RequestGroup& group : region.groups) requests += group.count;
  return requests;
}

}  // namespace

TEST_CASE("plan input: each request is in its window and region, also before time 0") {
  PlanCollector collector;
  for (const auto& [offset, start_s] : {std::pair{0ULL, -3.0}, {100 * MiB, 6.9}, {10 * MiB, 7.0}, {70 * MiB, 27.5}})
    REQUIRE(collector.add("/a", {offset, 4096, true, start_s}));
  REQUIRE(collector.add("/b", {5, 1, false, 8}));
  REQUIRE(collector.add("/b", {5, 0, false, 8}));  // empty
  const PlanInput input = collector.finish({.window_s = 10}).value();
  CHECK(input.files == std::vector<PlannedFile>{{"/a", 100 * MiB + 4096}, {"/b", 6}});
  REQUIRE(input.regions.size() == 3);
  CHECK(input.regions[1] == PlannedRegion{0, 1, 64 * MiB, 36 * MiB + 4096});
  CHECK(input.regions[2] == PlannedRegion{1, 0, 0, 6});
  REQUIRE(input.windows.size() == 4);  // from -3: [-3, 7), [7, 17), [17, 27), [27, 37)
  CHECK(requests_of(input.windows[0].regions) == 2);
  CHECK(requests_of(input.windows[1].regions) == 2);
  CHECK(requests_of(input.windows[2].regions) == 0);
  CHECK(input.windows[3].regions[1].groups.size() == 1);
  CHECK(input.windows[3].regions[0].groups.empty());
}

TEST_CASE("plan input: the requests of a window are those of its regions, cut where a region ends") {
  PlanCollector collector;
  REQUIRE(collector.add("/b", {64 * MiB - 10, 30, true, 5, 1}));
  REQUIRE(collector.add("/b", {7, 1, false, 12, 0}));
  REQUIRE(collector.add("/a", {0, 4096, false, 4, 0}));
  const PlanInput input = collector.finish({.window_s = 10}).value();
  const auto requests = collector.requests_of(input);
  REQUIRE(requests.size() == 1);  // from 4 s on
  CHECK(requests[0] ==
        std::vector<RegionRequest>{
            {0, 0, 0, 4096, false}, {1, 1, 64 * MiB - 10, 10, true}, {1, 2, 0, 20, true}, {0, 1, 7, 1, false}});
}

TEST_CASE("plan: from a layout in place, moves that bring too little are not made") {
  const DescribedServers servers = unlike_servers(9 * MiB);  // half a region
  PlanInput input = moving_spot(2000);
  const Plan before = make_plan(input, servers, {}).value().plan;
  for (const PlanAlgorithm algorithm : {PlanAlgorithm::ours, PlanAlgorithm::paper}) {
    CAPTURE(static_cast<int>(algorithm));
    REQUIRE(put_current(before, servers.servers, input).has_value());
    const Plan again = make_plan(input, servers, {.algorithm = algorithm}).value().plan;
    REQUIRE(!again.windows[0].moves.empty());  // region 11 is in place, region 3 is hot
    for (const PlannedMove& move : again.windows[0].moves) {
      CHECK(move.from == before.windows[1].placements[move.region].stripe_bytes);
      CHECK(move.to == again.windows[0].placements[move.region].stripe_bytes);
    }
  }
  PlanInput little = moving_spot(5);
  REQUIRE(put_current(before, servers.servers, little).has_value());
  const Plan still = make_plan(little, servers, {}).value().plan;
  CHECK(still.windows[0].moves.empty());
  CHECK(still.windows[0].placements[11].stripe_bytes == before.windows[1].placements[11].stripe_bytes);
}

TEST_CASE("plan: files keep the regions that they have, and take room also if no request uses them") {
  const DescribedServers servers = unlike_servers(17 * MiB);
  const Plan before = make_plan(moving_spot(2000), servers, {}).value().plan;
  PlanCollector collector;
  for (int n = 0; n < 100; ++n) {
    REQUIRE(collector.add("/data/field", {1025 * MiB, 4096, false, 0}));  // has grown
    REQUIRE(collector.add("/data/new", {static_cast<std::uint64_t>(n) * MiB / 2, MiB / 2, false, 0}));
  }
  PlanInput input = collector.finish({.current = &before}).value();
  REQUIRE(put_current(before, servers.servers, input).has_value());
  REQUIRE(before.regions[15].length_bytes < 64 * MiB);
  REQUIRE(input.regions.size() == 16 + 1 + 1);
  CHECK(input.regions[15].length_bytes == 64 * MiB);
  CHECK(input.regions[16] == PlannedRegion{0, 16, 1024 * MiB, MiB + 4096});
  CHECK(input.current[11] == before.windows[1].placements[11].stripe_bytes);
  CHECK(input.current[16].empty());

  PlanCollector others;
  REQUIRE(others.add("/data/other", {0, 4096, false, 0}));
  PlanInput idle = others.finish({.current = &before}).value();
  REQUIRE(put_current(before, servers.servers, idle).has_value());
  CHECK(idle.files.size() == 2);
  CHECK(idle.regions.size() == 17);
  CHECK(checked(make_plan(idle, servers, {}).value().plan).has_value());
  DescribedServers fewer = servers;
  fewer.servers.classes[1].count = 3;
  CHECK(put_current(before, fewer.servers, idle).error().kind == ErrorKind::usage);
}

TEST_CASE("plan input: impossible requests, none at all, and too many windows are refused") {
  PlanCollector collector;
  CHECK(collector.add("/a", {max_bytes, 1, false, 0}).error().kind == ErrorKind::bad_input);
  CHECK(collector.add("/a", {1ULL << 63U, 1, false, 0}).error().kind == ErrorKind::bad_input);
  CHECK(collector.add("/a", {0, 1, false, NAN}).error().kind == ErrorKind::bad_input);
  CHECK(collector.finish({}).error().kind == ErrorKind::infeasible);
  REQUIRE(collector.add("/a", {0, 1, false, 0}));
  CHECK(collector.finish({}).value().windows.size() == 1);
  REQUIRE(collector.add("/a", {0, 1, false, 1e9}));
  CHECK(collector.finish({.window_s = 1}).error().kind == ErrorKind::usage);
}

TEST_CASE("plan: windows of any length follow each other without overlap, so the plan can be read again") {
  for (const double window_s : {0.1, 0.3, 0.7, 1.0 / 3}) {
    PlanCollector collector;
    for (std::uint64_t n = 0; n < 30; ++n)
      REQUIRE(collector.add("/a", {n * 4096, 4096, false, 0.1 + 0.07 * static_cast<double>(n)}));
    const PlanInput input = collector.finish({.window_s = window_s}).value();
    const Plan plan = make_plan(input, unlike_servers({}), {}).value().plan;
    CHECK(checked(plan).has_value());
    std::uint64_t requests = 0;
    for (const PlannedWindow& each : plan.windows) requests += iosig::requests_of(each);
    CHECK(requests == 30);
  }
}

TEST_CASE("plan input: windows that use the regions alike are joined, and no request is lost") {
  PlanCollector collector;
  std::mt19937_64 random(1);
  for (int n = 0; n < 6000; ++n) {  // a hundred minutes; another region is hot in the last forty
    const std::uint64_t hot = n < 3600 ? 2 : 9;
    const std::uint64_t region = random() % 10 < 6 ? hot : random() % 12;
    REQUIRE(collector.add("/a", {region * 16 * MiB, 4096, false, static_cast<double>(n)}));
  }
  const PlanInput input = collector.finish({.window_s = 60, .region_bytes = 16 * MiB, .joins_windows = true}).value();
  REQUIRE(input.windows.size() == 2);
  CHECK(input.windows[0].end_s == 3600);
  CHECK(input.windows[1].start_s == 3600);
  CHECK(requests_of(input.windows[0].regions) == 3600);
  CHECK(requests_of(input.windows[1].regions) == 2400);
  CHECK(collector.requests_of(input)[1].size() == 2400);
}

TEST_CASE("plan input: a thousand million accesses of a pattern are counted by its loops") {
  constexpr std::int64_t count = 1'000'000'000, size = 4096;
  PatternBuilder builder(2, {-1, -1, -1, -1, -1, -1, -1, -1});
  const Node nodes[] = {{true, 2, 0}, {false, 2, 1}};
  const std::int64_t numbers[] = {count, 0, size, size, 0};  // trips; logical = 4096 i; length = 4096
  builder.add_nest(nodes, numbers, count);
  Pattern pattern = builder.finish();
  pattern.kinds[0] = Column::logical;
  pattern.kinds[1] = Column::length;
  REQUIRE(checked(pattern).has_value());
  const PlanInput input = plan_input("x", pattern, true, {.region_bytes = GiB}).value();
  REQUIRE(input.windows.size() == 1);
  CHECK(requests_of(input.windows[0].regions) == count);  // no region cuts one
  CHECK(input.regions.size() == 3815);                    // 4.096e12 bytes by 2^30, rounded up
  CHECK(input.files[0].bytes == 4'096'000'000'000);       // the end of the last one, not of its region
  CHECK(input.windows[0].regions[7].groups.front().is_write);
  CHECK(plan_input("x", pattern, true, {.region_bytes = MiB}).error().kind ==
        ErrorKind::usage);  // 3906250 regions: more than 2^20
  CHECK(plan_input("x", pattern, true, {.region_bytes = 16 * MiB}).value().regions.size() == 244'141);
}

TEST_CASE("plan input: regions of a pattern are cut where its accesses change") {
  constexpr std::int64_t small = 4096, large = 1 << 20;
  PatternBuilder builder(2, {-1, -1, -1, -1, -1, -1, -1, -1});
  const Node nodes[] = {{true, 2, 0}, {false, 2, 1}};
  const std::int64_t first[] = {5 * 256, 0, small, small, 0};  // 5 MB in pieces of 4 KB, then 20 MB in pieces of 1 MB
  builder.add_nest(nodes, first, 5 * 256);
  const std::int64_t second[] = {20, 5 << 20, large, large, 0};
  builder.add_nest(nodes, second, 20);
  Pattern pattern = builder.finish();
  pattern.kinds[0] = Column::logical;
  pattern.kinds[1] = Column::length;
  REQUIRE(checked(pattern).has_value());
  const PlanInput input = plan_input("x", pattern, false, {.is_adaptive = true}).value();
  REQUIRE(input.regions.size() == 2);
  CHECK(input.regions[1] == PlannedRegion{0, 1, 5 * MiB, 20 * MiB});
  CHECK(requests_of(input.windows[0].regions) == 5 * 256 + 20);
}

TEST_CASE("plan: the hot region is on the fast servers while it is hot, and capacity is kept") {
  const PlanInput input = moving_spot(2000);
  for (const PlanAlgorithm algorithm : {PlanAlgorithm::paper, PlanAlgorithm::ours}) {
    CAPTURE(static_cast<int>(algorithm));
    // A region and a bit; half a region and a bit, since ours divides a hot region among all servers.
    const std::uint64_t room = (algorithm == PlanAlgorithm::paper ? 17 : 9) * MiB;
    const DescribedServers servers = unlike_servers(room);
    const auto plan = make_plan(input, servers, {.algorithm = algorithm}).map([](TriedPlan made) { return made.plan; });
    REQUIRE_MESSAGE(plan.has_value(), plan.error().message);
    REQUIRE_MESSAGE(checked(*plan).has_value(), checked(*plan).error().message);
    REQUIRE(plan->windows.size() == 2);
    for (const auto& [window, hot] : {std::pair{0, 3}, {1, 11}}) {
      const PlannedWindow& planned = plan->windows[static_cast<std::size_t>(window)];
      CHECK(iosig::requests_of(planned) == 2000);
      CHECK(planned.placements[static_cast<std::size_t>(hot)].stripe_bytes[1] > 0);
      CHECK(planned.seconds < planned.home_s);
      std::uint64_t held = 0;
      for (std::size_t n = 0; n < planned.placements.size(); ++n)
        held += bytes_on_classes(servers.servers, planned.placements[n].stripe_bytes, plan->regions[n].length_bytes)[1];
      CHECK(held <= room);
    }
    CHECK(plan->windows[0].moves.empty());
    REQUIRE(plan->windows[1].moves.size() >= 2);
    for (const PlannedMove& move : plan->windows[1].moves) {
      CHECK(move.from == plan->windows[0].placements[move.region].stripe_bytes);
      CHECK(move.to == plan->windows[1].placements[move.region].stripe_bytes);
    }
  }
}

TEST_CASE("plan: the paper's algorithm needs two classes; with one, nothing is worse than the usual place") {
  const PlanInput input = moving_spot(100);
  DescribedServers one = unlike_servers({});
  one.servers.classes.pop_back();
  one.names.pop_back();
  CHECK(make_plan(input, one, {.algorithm = PlanAlgorithm::paper}).error().kind == ErrorKind::usage);
  DescribedServers fast_first = unlike_servers({});
  std::swap(fast_first.servers.classes[0], fast_first.servers.classes[1]);
  std::swap(fast_first.names[0], fast_first.names[1]);
  CHECK(make_plan(input, fast_first, {.algorithm = PlanAlgorithm::paper}).error().kind == ErrorKind::usage);
  const Plan plan = make_plan(input, one, {}).value().plan;
  for (const PlannedWindow& window : plan.windows) CHECK(window.seconds <= window.home_s * (1 + 1e-9));
}
