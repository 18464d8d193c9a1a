// Hot regions that move: how popular they are, what the processes send, and what movers do.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>

#include "iosig/simulate/hot_regions.h"

using namespace iosig;
using namespace iosig::simulate;

namespace {

constexpr std::uint64_t KB = 1000;

/// Servers of 10 ms for each part, as fast as can be otherwise, each with a layout of its own.
struct World {
  System system;
  Placement placement;

  World(std::uint32_t servers, const HotRegions& workload) {
    system.nodes = {{1e15}};
    for (std::uint32_t n = 0; n < servers; ++n) {
      const DiskCosts costs{.start_s = 0.01, .near_start_s = 0.01, .bytes_per_s = 1e15};
      system.servers.push_back({costs, costs, 1e15});
      const std::array<Stripe, 1> alone{{{n, KB}}};
      placement.layouts.emplace_back(alone);
    }
    placement.layout_of.assign(workload.windows, std::vector<std::uint32_t>(workload.regions));
  }
};

HotRegions small() {
  return {.processes = 2, .regions = 4, .region_bytes = 100 * KB, .request_bytes = KB, .windows = 1, .window_s = 1};
}

}  // namespace

TEST_CASE("hot regions: popularity follows Zipf's law, and drift lets exactly its share of the regions change places") {
  const HotRegions workload{.regions = 100, .skew = 0.8, .drift = 0.3, .windows = 3};
  const auto shares = shares_of(workload);
  REQUIRE(shares.size() == 3);
  double weights = 0;
  for (int k = 1; k <= 100; ++k) weights += std::pow(k, -0.8);
  for (std::size_t window = 0; window < shares.size(); ++window) {
    auto sorted = shares[window];
    std::ranges::sort(sorted, std::greater());
    for (std::size_t k = 0; k < sorted.size(); ++k)
      CHECK(sorted[k] == doctest::Approx(std::pow(k + 1.0, -0.8) / weights));
    if (window == 0) continue;
    int changed = 0;
    for (std::size_t region = 0; region < 100; ++region)
      changed += shares[window][region] != shares[window - 1][region] ? 1 : 0;
    CHECK(changed == 30);
  }
  CHECK(shares == shares_of(workload));
  CHECK(shares != shares_of({.regions = 100, .drift = 0.3, .windows = 3, .seed = 2}));
}

TEST_CASE("hot regions: two processes on one server of 10 ms a request send 100 in a second, in a window or four") {
  HotRegions workload = small();
  const World world(1, workload);
  const auto one = run(world.system, workload, world.placement, {});
  REQUIRE(one);
  // Requests are asked for until the window ends; those on their way then count, too.
  CHECK(one->totals.requests == doctest::Approx(101).epsilon(0.02));
  CHECK(one->totals.bytes_per_s() == doctest::Approx(100 * KB));
  workload.windows = 4;
  workload.window_s = 0.25;
  const World four(1, workload);
  CHECK(run(four.system, workload, four.placement, {})->totals.requests == one->totals.requests);
}

TEST_CASE("hot regions: a region's server gets the region's share of the requests") {
  HotRegions workload = small();
  workload.window_s = 200;
  World world(4, workload);
  for (std::uint32_t region = 0; region < 4; ++region) world.placement.layout_of[0][region] = region;
  const auto done = run(world.system, workload, world.placement, {});
  const auto shares = shares_of(workload);
  for (std::size_t region = 0; region < 4; ++region) {
    const double found =
        static_cast<double>(done->totals.servers[region].parts) / static_cast<double>(done->totals.parts);
    CHECK(found == doctest::Approx(shares[0][region]).epsilon(0.05));
  }
}

TEST_CASE("hot regions: colliding processes meet at one block, so one server works at a time") {
  HotRegions workload = small();
  workload.is_colliding = true;
  World world(2, workload);
  const std::array<Stripe, 2> both{{{0, KB}, {1, KB}}};
  world.placement.layouts = {Layout(both)};
  const auto done = run(world.system, workload, world.placement, {});
  CHECK(done->totals.end_s == doctest::Approx(static_cast<double>(done->totals.requests) * 0.01));
  CHECK(done->totals.servers[0].parts % 2 == 0);
  CHECK(done->totals.servers[0].parts > 0);
  CHECK(done->totals.servers[1].parts > 0);
}

TEST_CASE("hot regions: a region is used where it was until it is moved, and where it is from then on") {
  HotRegions workload = small();
  workload.windows = 2;
  World world(2, workload);
  world.placement.layout_of[1].assign(workload.regions, 1);
  // Moved for nothing: a second on each server, and at most two requests of the first end later.
  const auto at_once = run(world.system, workload, world.placement, {.movers = 0});
  CHECK(at_once->totals.servers[0].parts == doctest::Approx(101).epsilon(0.02));
  CHECK(at_once->totals.servers[1].parts == doctest::Approx(101).epsilon(0.02));
  CHECK(at_once->moved_regions == 0);
  // One mover copies 4 times 100 KB in chunks of 25 KB: 16 parts read of server 0, as many written to server 1.
  const auto moved = run(world.system, workload, world.placement, {.movers = 1, .chunk_bytes = 25 * KB});
  CHECK(moved->moved_regions == 4);
  CHECK(moved->totals.servers[0].bytes + moved->totals.servers[1].bytes == moved->totals.bytes + 2 * 4 * 100 * KB);
  CHECK(moved->totals.servers[1].parts < at_once->totals.servers[1].parts + 16);
  CHECK(moved->totals.servers[0].parts > at_once->totals.servers[0].parts + 16);
  CHECK(moved->totals.bytes_per_s() < at_once->totals.bytes_per_s());
  // A tenth of each region: 4 chunks of 10 KB.
  const auto tenth = run(world.system, workload, world.placement, {.movers = 1, .chunk_bytes = 25 * KB, .share = 0.1});
  CHECK(tenth->moved_regions == 4);
  CHECK(tenth->totals.servers[0].bytes + tenth->totals.servers[1].bytes == tenth->totals.bytes + 2 * 4 * 10 * KB);
}

TEST_CASE("hot regions: regions are moved in the order that is asked for") {
  HotRegions workload = small();
  workload.windows = 2;
  workload.window_s = 0.2;
  workload.processes = 1;
  World world(3, workload);
  world.placement.layout_of[1] = {2, 0, 0, 1};
  world.placement.order = {{}, {3, 0}};
  // 100 KB in chunks of 20 KB are 10 parts of 10 ms and more, so only the first region is moved in 0.2 s.
  const auto done = run(world.system, workload, world.placement, {.movers = 1, .chunk_bytes = 20 * KB});
  CHECK(done->moved_regions == 1);
  CHECK(done->totals.servers[1].bytes >= 100 * KB);
  CHECK(done->totals.servers[2].bytes < 100 * KB);
}

TEST_CASE("hot regions: a process has the same requests under every placement") {
  HotRegions workload = small();
  workload.window_s = 5;
  World world(4, workload);
  for (std::uint32_t region = 0; region < 4; ++region) world.placement.layout_of[0][region] = region;
  const auto spread = run(world.system, workload, world.placement, {});
  World other(4, workload);
  for (std::uint32_t region = 0; region < 4; ++region) other.placement.layout_of[0][region] = 3 - region;
  const auto turned = run(other.system, workload, other.placement, {});
  CHECK(spread->totals.requests == turned->totals.requests);
  for (std::size_t n = 0; n < 4; ++n) CHECK(spread->totals.servers[n].parts == turned->totals.servers[3 - n].parts);
}

TEST_CASE("hot regions: what cannot be run is refused") {
  const HotRegions sound = small();
  const auto message_of = [&](auto change) {
    HotRegions workload = sound;
    World world(1, workload);
    Moving moving;
    change(workload, world, moving);
    const auto done = run(world.system, workload, world.placement, moving);
    if (done) return std::string();
    CHECK(done.error().kind == ErrorKind::usage);
    return done.error().message;
  };
  CHECK(message_of([](auto&, auto&, auto&) {}).empty());
  CHECK(message_of([](auto& w, auto&, auto&) { w.skew = -1; }).starts_with("skew -1"));
  CHECK(message_of([](auto& w, auto&, auto&) { w.window_s = 0; }).starts_with("skew"));
  CHECK(message_of([](auto& w, auto&, auto&) { w.regions = 1U << 21U; }).starts_with("2097152 regions in 1 windows"));
  CHECK(message_of([](auto& w, auto&, auto&) { w.processes = 0; }).starts_with("0 processes"));
  CHECK(message_of([](auto& w, auto&, auto&) { w.request_bytes = 101 * KB; }).starts_with("requests of 101000 bytes"));
  CHECK(message_of([](auto& w, auto&, auto&) { w.windows = 2; }).starts_with("a placement for 1 windows"));
  CHECK(message_of([](auto&, auto& world, auto&) {
          world.placement.layout_of[0].pop_back();
        }).starts_with("a placement of 3 regions"));
  CHECK(message_of([](auto&, auto& world, auto&) { world.placement.order = {{4}}; }).starts_with("an order names"));
  CHECK(message_of([](auto&, auto&, auto& moving) { moving.share = 2; }).starts_with("2 of a region moved"));
  CHECK(message_of([](auto&, auto& world, auto&) { world.system.nodes.clear(); }).starts_with("no node"));
}
