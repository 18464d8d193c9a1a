// The placements of H2DP's evaluation in the worlds where the numbers can be worked out.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "iosig/base/units.h"
#include "iosig/decide/meeting.h"
#include "iosig/decide/migration.h"
#include "iosig/decide/policies.h"
#include "iosig/decide/striping.h"

using namespace iosig;

namespace {

constexpr std::uint64_t region_bytes = 64 * MiB;

/// 12 HServers of 8 ms and 100 MB/s, 4 SServers of 0.1 ms and 250 MB/s with room for 1/6 of `regions`.
Servers physical_for(std::uint32_t regions) {
  const ServiceTime hdd{0.008, 1e-8}, ssd{0.0001, 4e-9};
  return {.classes = {{"hdd", 12, hdd, hdd, {}}, {"ssd", 4, ssd, ssd, regions * region_bytes / 6 / 4}},
          .network = {0.0001, 1 / 117e6},
          .processes = 32};
}

/// Regions with 1000, 990, ... scattered requests.
std::vector<Region> cooling_regions(std::uint32_t count, std::uint64_t request_bytes) {
  std::vector<Region> regions;
  for (std::uint32_t n = 0; n < count; ++n)
    regions.push_back({0,
                       n * region_bytes,
                       region_bytes,
                       {{.length = request_bytes,
                         .stride = request_bytes,
                         .count = 1000 - 10 * n,
                         .places = default_region_bytes / request_bytes}}});
  return regions;
}

std::vector<Stripes> placed(PlacementPolicy policy, std::uint32_t regions, std::uint64_t request_bytes) {
  const std::vector windows(1, cooling_regions(regions, request_bytes));
  const auto found = place_windows(policy, windows, physical_for(regions));
  REQUIRE(found);
  return found->stripes.front();
}

}  // namespace

TEST_CASE("policies: Algorithm 1 uses SServers alone once HServers without a byte cost nothing") {
  const std::vector<Region> one = cooling_regions(1, 512 * KiB);
  const Servers servers = physical_for(6);
  // Any h > 0 costs p = 32 start-ups of 8 ms; <0, 128 KB> costs 32 times 0.1 + 0.52 ms, and the links 32 times 1.1 ms.
  CHECK(paper_stripes(one, servers)->front().stripes == Stripes{0, 128 * KiB});
  CHECK(paper_stripes(one, servers, {.charges_idle = true})->front().stripes[0] > 0);
}

TEST_CASE("policies: DEF has a quarter of each hybrid region on SServers, so two thirds of the regions are hybrid") {
  const auto stripes = placed(PlacementPolicy::def, 48, 512 * KiB);
  CHECK(std::ranges::count(stripes, Stripes{64 * KiB, 64 * KiB}) == 32);  // 48 / 6 regions' room, a quarter each
  CHECK(std::ranges::count(stripes, Stripes{64 * KiB, 0}) == 16);
}

TEST_CASE("policies: PADP draws as many regions as H2DP selects, with the same stripes; H2DP's are the hottest") {
  const auto drawn = placed(PlacementPolicy::padp, 48, 512 * KiB),
             hot = placed(PlacementPolicy::printed, 48, 512 * KiB);
  const Stripes hybrid{0, 128 * KiB};
  CHECK(std::ranges::count(drawn, hybrid) == 8);
  CHECK(std::ranges::count(hot, hybrid) == 8);
  for (std::size_t n = 0; n < 8; ++n) CHECK(hot[n] == hybrid);
  CHECK(drawn != hot);
  CHECK(std::ranges::count(drawn, Stripes{43691, 0}) == 40);  // 524288 / 12 = 43690.7
  CHECK(std::ranges::count(hot, Stripes{43691, 0}) == 40);
}

TEST_CASE("policies: PSA gives SServers smaller stripes, so every region is hybrid") {
  for (const std::uint64_t request : {64 * KiB, 512 * KiB, 4 * MiB}) {
    CAPTURE(request);
    const auto stripes = placed(PlacementPolicy::psa, 48, request);
    const Stripes& pair = stripes.front();
    CHECK(std::ranges::count(stripes, pair) == 48);
    CHECK(pair[1] > 0);
    CHECK(pair[1] < pair[0]);
    CHECK(12 * pair[0] + 4 * pair[1] >= request);
    CHECK(6 * 4 * pair[1] <= 12 * pair[0] + 4 * pair[1]);  // at most a sixth on SServers
  }
}

TEST_CASE("policies: a region that cools goes out before the one that replaces it comes in") {
  std::vector<std::vector<Region>> windows(2, cooling_regions(12, 512 * KiB));
  std::swap(windows[1][0].groups, windows[1][11].groups);
  const auto found = place_windows(PlacementPolicy::printed, windows, physical_for(12));
  REQUIRE(found);
  const Stripes hybrid{0, 128 * KiB};
  CHECK(found->stripes[0][0] == hybrid);
  CHECK(found->stripes[1][11] == hybrid);
  CHECK(found->stripes[1][0] != hybrid);
  CHECK(found->order == std::vector<std::vector<std::uint32_t>>{{}, {0, 11}});
  const auto kept = place_windows(PlacementPolicy::printed, windows, physical_for(12), {.is_migrating = false});
  CHECK(kept->stripes[1] == found->stripes[0]);
}

TEST_CASE("policies: ours takes no more room than there is, and no less than printed's speed by its own measure") {
  const std::vector windows(1, cooling_regions(48, 512 * KiB));
  const Servers servers = physical_for(48);
  const auto seconds_of = [&](PlacementPolicy policy) {
    const auto found = place_windows(policy, windows, servers);
    REQUIRE(found);
    std::vector<Load> loads;
    std::uint64_t used = 0;
    for (std::size_t n = 0; n < 48; ++n) {
      const Stripes& stripes = found->stripes[0][n];
      loads.push_back(load_of(servers, stripes, windows[0][n].groups));
      used += bytes_on_classes(servers, stripes, region_bytes)[1];
    }
    CHECK(used <= *servers.classes[1].capacity_bytes);
    return loaded_seconds(servers, loads, Contention::spread);
  };
  const double ours = seconds_of(PlacementPolicy::ours);
  // A request on all 12 HServers costs each 8 ms: the asymptotic bound of printed is at least 4 times ours.
  CHECK(seconds_of(PlacementPolicy::printed) > 4 * ours);
  CHECK(seconds_of(PlacementPolicy::def) > ours);
}

TEST_CASE("meeting: a request is divided so that its servers end together, whole or on one class") {
  const Servers servers = physical_for(6);
  const std::vector windows(2, cooling_regions(2, 512 * KiB));
  const auto options = meeting_options(windows, servers);
  REQUIRE(options.size() == 2);
  REQUIRE(options[1].size() == 2);
  const auto& choices = options[0][0].options;
  CHECK(choices[0].stripes == Stripes{86 * 512, 0});  // r / 12 in sectors
  CHECK(std::ranges::any_of(choices, [](const LayoutOption& each) { return each.stripes == Stripes{0, 128 * KiB}; }));
  for (std::size_t n = 0; n < choices.size(); ++n) {
    CHECK(choices[n].stripes == options[1][0].options[n].stripes);
    CHECK(12 * choices[n].stripes[0] + 4 * choices[n].stripes[1] >= 512 * KiB);
  }
  // All of 1000 requests start up each HServer: 1000 (8 ms + 44032 bytes / 100 MB/s).
  CHECK(choices[0].seconds == doctest::Approx(1000 * (0.008 + 43690.67e-8)).epsilon(0.01));
}

TEST_CASE("policies: names, and worlds that they do not know") {
  CHECK(placement_policy_of("psa") == PlacementPolicy::psa);
  CHECK(!placement_policy_of("PSA"));
  Servers one_class = physical_for(6);
  one_class.classes.pop_back();
  const std::vector windows(1, cooling_regions(2, 4 * KiB));
  CHECK(place_windows(PlacementPolicy::def, windows, one_class).error().kind == ErrorKind::usage);
  CHECK(place_windows(PlacementPolicy::def, {}, physical_for(6)).error().kind == ErrorKind::usage);
}
