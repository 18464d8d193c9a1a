// Servers by class, stripes by region, and given accesses, as the engine takes them.
#include <doctest/doctest.h>

#include "iosig/cost/striping.h"
#include "iosig/simulate/accesses.h"
#include "iosig/simulate/plan.h"
#include "iosig/simulate/striped.h"

using namespace iosig;

namespace {

constexpr std::uint64_t KB = 1000;
using Windows = std::vector<std::vector<Stripes>>;

/// 3 HServers of 10 ms and 100 MB/s, 2 SServers of 1 ms and 200 MB/s (read; written: half as fast), links of 100 MB/s.
Servers servers_3_2() {
  const ServiceTime hdd{0.010, 1e-8}, ssd{0.001, 5e-9}, written{0.002, 1e-8};
  return {.classes = {{"hdd", 3, hdd, hdd, {}}, {"ssd", 2, ssd, written, {}}}, .network = {0.0001, 1e-8}};
}

}  // namespace

TEST_CASE("striped: servers are those of the classes, in their order") {
  const std::vector<simulate::DiskHabit> habits{{0.5, 0.625}, {}};
  const auto system = simulate::system_of(servers_3_2(), habits);
  REQUIRE(system);
  REQUIRE(system->servers.size() == 5);
  CHECK(system->latency_s == 0.0001);
  CHECK(system->servers[2].read.near_start_s == doctest::Approx(0.00625));
  CHECK(system->servers[2].read.spread == 0.5);
  CHECK(system->servers[3].read.near_start_s == 0.001);
  CHECK(system->servers[3].read.bytes_per_s == doctest::Approx(200e6));
  CHECK(system->servers[4].write.bytes_per_s == doctest::Approx(100e6));
  CHECK(system->servers[4].link_bytes_per_s == doctest::Approx(100e6));
  CHECK(!simulate::system_of({}));
  CHECK(!simulate::system_of(servers_3_2(), std::vector<simulate::DiskHabit>(1)));
}

TEST_CASE("striped: each server gets the bytes that the cost model says, in every region") {
  const Servers servers = servers_3_2();
  const std::vector<Stripes> stripes{{3, 5}, {4, 0}, {0, 7}, {3, 5}, {3, 5}, {3, 5}, {3, 5}, {3, 5}, {3, 5}};
  const simulate::Placement placement = simulate::placement_of(servers, Windows{stripes});
  std::vector<simulate::Layout::Part> found;
  std::vector<StripePart> expected;
  for (std::uint32_t region = 0; region < stripes.size(); ++region) {
    const StripeMap map(servers, stripes[region], region);
    const simulate::Layout& layout = placement.layouts[placement.layout_of[0][region]];
    for (std::uint64_t offset = 0; offset < 40; offset += 3)
      for (const std::uint64_t length : {1, 2, 10, 19, 20, 57}) {
        map.parts(offset, length, expected);
        layout.split(offset, length, found);
        REQUIRE(found.size() == expected.size());
        for (const simulate::Layout::Part& part : found)
          CHECK(std::ranges::count_if(expected, [&](const StripePart& each) {
                  return each.server == part.server && each.bytes == part.bytes;
                }) == 1);
      }
  }
  CHECK(placement.layout_of[0][0] == placement.layout_of[0][6]);  // 3 and 2 servers: the turns repeat after 6
  CHECK(placement.layout_of[0][0] != placement.layout_of[0][3]);
}

TEST_CASE("striped: a plan is made from the shares of the requests, which add up") {
  const simulate::HotRegions workload{.regions = 10, .region_bytes = 64 * KB, .request_bytes = KB, .windows = 2};
  const auto windows = simulate::regions_of(workload, 1'000'000);
  REQUIRE(windows.size() == 2);
  const auto shares = simulate::shares_of(workload);
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < 10; ++n) {
    const Region& region = windows[1][n];
    CHECK(region.offset == n * 64 * KB);
    REQUIRE(region.groups.size() == 1);
    CHECK(static_cast<double>(region.groups[0].count) == doctest::Approx(shares[1][n] * 1e6).epsilon(1e-4));
    sum += region.groups[0].count;
  }
  CHECK(sum == doctest::Approx(1e6).epsilon(1e-5));
  CHECK(simulate::regions_of(workload, 1)[0][9].groups.size() <= 1);
}

TEST_CASE("accesses: each process goes its own way, and an access of two regions is two requests") {
  const Servers servers = servers_3_2();
  const auto hardware = simulate::system_of(servers);
  const auto placement = simulate::placement_of(servers, Windows{{{100 * KB, 0}, {0, 100 * KB}}});
  const simulate::PlacedFile file{100 * KB, placement.layouts, placement.layout_of[0]};
  // 50 KB from either side of the border: 0.1 + 10 + 0.5 + 0.5 ms of a HServer, then 0.1 + 1 + 0.25 + 0.5 ms.
  const std::vector<simulate::Access> crossing{{0, 50 * KB, 100 * KB}};
  CHECK(simulate::run(*hardware, crossing, file)->end_s == doctest::Approx(0.0111 + 0.00185));
  // A second process works beside it, on the SServer of region 1: it is done first.
  const std::vector<simulate::Access> both{{0, 50 * KB, 100 * KB}, {1, 100 * KB, 50 * KB}};
  const auto totals = simulate::run(*hardware, both, file);
  CHECK(totals->end_s == doctest::Approx(0.0111 + 0.00185));
  CHECK(totals->requests == 3);
  CHECK(totals->bytes == 150 * KB);
  CHECK(simulate::run(*hardware, std::vector<simulate::Access>{{0, 50 * KB, 100 * KB, true}}, file)->end_s ==
        doctest::Approx(0.0111 + 0.0001 + 0.0005 + 0.002 + 0.0005));
}

TEST_CASE("accesses: what lies outside the file or has no process is refused with its number") {
  const Servers servers = servers_3_2();
  const auto hardware = simulate::system_of(servers);
  const auto placement = simulate::placement_of(servers, Windows{{{KB, KB}}});
  const simulate::PlacedFile file{100 * KB, placement.layouts, placement.layout_of[0]};
  using Accesses = std::vector<simulate::Access>;
  CHECK(simulate::run(*hardware, Accesses{{0, 99 * KB, KB}}, file));
  CHECK(simulate::run(*hardware, Accesses{{0, 99 * KB, KB + 1}}, file).error().message.starts_with("access 0: 1001"));
  CHECK(!simulate::run(*hardware, Accesses{{0, 1ULL << 63, 1ULL << 63}}, file));
  CHECK(!simulate::run(*hardware, Accesses{{1U << 20, 0, 1}}, file));
  CHECK(!simulate::run(*hardware, Accesses{}, file));
  CHECK(!simulate::run(*hardware, Accesses{{0, 0, 1}}, file, 0));
}

namespace {

/// Two regions of 1 MB in one window: the first on the disks, the second on flash.
Plan plan_of_two_regions() {
  Plan plan;
  plan.servers = servers_3_2();
  plan.server_names = {{"h", "h", "h"}, {"s", "s"}};
  plan.files = {{"/data/x", 2'000'000}};
  plan.regions = {{0, 0, 0, 1'000'000}, {0, 1, 1'000'000, 1'000'000}};
  plan.windows = {{.end_s = 1, .placements = {{{100 * KB, 0}, 1}, {{0, 200 * KB}, 1}}}};
  REQUIRE(checked(plan).has_value());
  return plan;
}

}  // namespace

TEST_CASE("simulated plan: a request takes what its servers take, by the plan and by the baseline") {
  const Plan plan = plan_of_two_regions();
  const std::vector<simulate::WindowRequests> requests{{{{0, 1, 0, 100 * KB, false}}, 3.0}};
  const std::vector<Stripes> baseline(2, Stripes{100 * KB, 0});
  const auto run = simulate::run(plan, requests, baseline);
  REQUIRE_MESSAGE(run.has_value(), run.error().message);
  REQUIRE(run->size() == 1);
  // Latency, start-up, disk, link; each stands for three.
  CHECK(run->front().seconds == doctest::Approx(3 * (0.0001 + 0.001 + 1e5 * 5e-9 + 1e5 * 1e-8)));
  CHECK(run->front().baseline_s == doctest::Approx(3 * (0.0001 + 0.010 + 1e5 * 1e-8 + 1e5 * 1e-8)));
  CHECK(run->front().bytes == 3e5);
  CHECK(!simulate::run(plan, std::vector<simulate::WindowRequests>{{{{0, 1, 999'999, 2, false}}, 1.0}}, baseline));
  CHECK(!simulate::run(plan, std::vector<simulate::WindowRequests>{{{{0, 2, 0, 1, false}}, 1.0}}, baseline));
  CHECK(!simulate::run(plan, {}, baseline));
}

TEST_CASE("simulated plan: drawn requests are those of the groups, each once, or evenly many of each") {
  Region busy{.offset = 0, .length = 1'000'000, .groups = {{.length = 1000, .stride = 1000, .count = 900}}};
  Region quiet{.offset = 1'000'000,
               .length = 1'000'000,
               .groups = {{.offset = 4, .length = 8, .stride = 16, .count = 100, .is_write = true, .places = 62500}}};
  const std::vector<Region> regions{busy, quiet};
  auto all = simulate::drawn_requests(regions, 4, Contention::spread, 1000);
  CHECK(all.times == 1);
  REQUIRE(all.requests.size() == 1000);
  CHECK(std::ranges::count(all.requests, 3U, &RegionRequest::process) == 250);
  std::erase_if(all.requests, [](const RegionRequest& each) {
    return each.region == 1 && each.is_write && each.length == 8 && each.offset % 16 == 4 && each.offset < 1'000'000;
  });
  std::ranges::sort(all.requests, {}, &RegionRequest::offset);
  REQUIRE(all.requests.size() == 900);
  for (std::uint64_t n = 0; n < 900; ++n) CHECK(all.requests[n].offset == n * 1000);

  const auto some = simulate::drawn_requests(regions, 4, Contention::together, 100);
  CHECK(some.times == 10);
  CHECK(std::ranges::count(some.requests, 0U, &RegionRequest::region) == 90);
  CHECK(std::ranges::is_sorted(some.requests, {}, &RegionRequest::region));
  CHECK(simulate::drawn_requests({}, 4, Contention::spread).requests.empty());
}

TEST_CASE("simulated plan: usual stripes fill a class that is too small for all, and no more") {
  Plan plan = plan_of_two_regions();
  plan.servers.classes[1].capacity_bytes = 300 * KB;  // one region has 1 MB / 5 on each server
  const auto stripes = simulate::usual_stripes(plan);
  CHECK(std::ranges::count(stripes, Stripes{65536, 65536}) == 1);
  CHECK(std::ranges::count(stripes, Stripes{65536, 0}) == 1);
  plan.servers.classes[1].capacity_bytes.reset();
  CHECK(std::ranges::count(simulate::usual_stripes(plan), Stripes{65536, 65536}) == 2);
}
