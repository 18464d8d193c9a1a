#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "iosig/base/units.h"
#include "iosig/decide/plan.h"
#include "iosig/decide/trial.h"

namespace iosig {
namespace {

/// Twelve disks and four SSD servers that hold a sixth of `bytes`.
Servers unlike_servers(std::uint64_t bytes, std::uint32_t processes) {
  Servers servers;
  servers.classes = {{"hdd", 12, {8e-3, 1e-8}, {8e-3, 1e-8}, std::nullopt},
                     {"ssd", 4, {1e-4, 4e-9}, {1.5e-4, 5.5e-9}, bytes / 6 / 4}};
  servers.network = {1e-4, 1 / 117e6};
  servers.processes = processes;
  return servers;
}

/// `processes` that sweep over a file together in requests of 4 KB: request k of each lies beside request k of the
/// others.
PlanCollector sweep(std::uint32_t processes, std::uint64_t bytes) {
  PlanCollector collector;
  for (std::uint64_t at = 0; at < bytes; at += 4 * KiB) {
    const auto turn = at / (4 * KiB);
    REQUIRE(collector.add("/a", {at, 4 * KiB, true, 1e-6 * static_cast<double>(turn / processes),
                                 static_cast<std::uint32_t>(turn % processes)}));
  }
  return collector;
}

double simulated_s(const Plan& plan, const std::vector<RegionRequest>& requests) {
  std::vector<std::uint64_t> lengths;
  for (const PlannedRegion& each : plan.regions) lengths.push_back(each.length_bytes);
  std::vector<Stripes> stripes;
  for (const RegionPlacement& each : plan.windows.front().placements) stripes.push_back(each.stripe_bytes);
  return simulate::run(plan.servers, lengths, requests, std::span(&stripes, 1)).value().front().end_s;
}

}  // namespace

TEST_CASE("trial: the requests at some moments are spans of those of each process, in their order") {
  std::vector<RegionRequest> all;
  for (std::uint64_t n = 0; n < 100'000; ++n) all.push_back({static_cast<std::uint32_t>(n % 7), 0, n, 1, false});
  const simulate::WindowRequests some = requests_at_moments(all, 10'000);
  CHECK(some.requests.size() > 8'000);
  CHECK(some.requests.size() < 12'000);
  CHECK(some.times * static_cast<double>(some.requests.size()) == doctest::Approx(100'000));
  std::size_t gaps = 0;
  std::vector<std::uint64_t> last(7, UINT64_MAX);
  for (const RegionRequest& each : some.requests) {
    std::uint64_t& before = last[each.process];
    if (before != UINT64_MAX) {
      CHECK(each.offset > before);
      if (each.offset != before + 7) ++gaps;
    }
    before = each.offset;
  }
  CHECK(gaps <= 7 * 8);
  CHECK(requests_at_moments(all, all.size()).requests == all);
  CHECK(requests_at_moments({}, 10).requests.empty());
}

TEST_CASE("trial: even layouts fit on all servers, and use the room that there is") {
  const std::vector<std::uint64_t> lengths(40, 64 * MiB);
  const Servers servers = unlike_servers(40 * 64 * MiB, 16);
  const std::vector<Stripes> layouts = even_layouts(lengths, servers, 4 * KiB);
  REQUIRE(layouts.size() > 9);
  for (const Stripes& stripes : layouts) {
    const auto bytes = bytes_on_classes(servers, stripes, 64 * MiB);
    CHECK(bytes[1] * 40 <= *servers.classes[1].capacity_bytes);
  }
  std::uint64_t most = 0;
  for (const Stripes& stripes : layouts) most = std::max(most, bytes_on_classes(servers, stripes, 64 * MiB)[1] * 40);
  CHECK(static_cast<double>(most) > 0.9 * static_cast<double>(*servers.classes[1].capacity_bytes));
  CHECK(even_layouts({}, servers, 4 * KiB).empty());
  // A request of 16 MB covers the 16 servers twice with stripes below 512 KB.
  for (const Stripes& stripes : even_layouts(lengths, servers, 16 * MiB)) CHECK(stripes[0] >= 512 * KiB);
}

TEST_CASE("trial: processes that sweep over a file together get stripes that keep all servers busy at any moment") {
  constexpr std::uint64_t bytes = 128 * MiB;
  PlanCollector collector = sweep(16, bytes);
  PlanInput input = collector.finish({}).value();
  const DescribedServers servers{unlike_servers(bytes, 16),
                                 {std::vector<std::string>(12), std::vector<std::string>(4)}};
  const auto requests = collector.requests_of(input);
  input.moments = {requests_at_moments(requests.front(), 2048)};

  const TriedPlan told = make_plan(input, servers, {.contention = Contention::spread}).value();
  CHECK(!told.trial);
  const TriedPlan tried = make_plan(input, servers, {}).value();
  REQUIRE(tried.trial);
  REQUIRE(checked(tried.plan).has_value());
  CHECK(tried.trial->chosen == PlanTrial::Chosen::even);
  CHECK(tried.trial->seconds < tried.trial->spread_s);
  const double before = simulated_s(told.plan, requests.front()), after = simulated_s(tried.plan, requests.front());
  CHECK(after < 0.8 * before);
  CHECK(after == doctest::Approx(tried.trial->seconds).epsilon(0.15));
}

TEST_CASE("trial: requests of all processes for the same bytes at the same time are divided over many servers") {
  constexpr std::uint32_t processes = 16;
  constexpr std::uint64_t size = 512 * KiB, bytes = GiB;
  PlanCollector collector;
  for (std::uint64_t turn = 0; turn < 400; ++turn)
    for (std::uint32_t process = 0; process < processes; ++process)
      REQUIRE(collector.add(
          "/a", {turn * 7919 % (bytes / size) * size, size, false, 0.01 * static_cast<double>(turn), process}));
  PlanInput input = collector.finish({}).value();
  const DescribedServers servers{unlike_servers(bytes, processes),
                                 {std::vector<std::string>(12), std::vector<std::string>(4)}};
  const auto requests = collector.requests_of(input);
  input.moments = {requests_at_moments(requests.front())};
  const TriedPlan spread = make_plan(input, servers, {.contention = Contention::spread}).value();
  const TriedPlan tried = make_plan(input, servers, {}).value();
  CHECK(tried.trial->seconds < 0.9 * tried.trial->spread_s);
  CHECK(simulated_s(tried.plan, requests.front()) < 0.9 * simulated_s(spread.plan, requests.front()));
}

TEST_CASE("trial: regions that are too long to simulate are planned by the cost model") {
  PlanCollector collector;
  REQUIRE(collector.add("/a", {0, 1, false, 0, 0}));
  REQUIRE(collector.add("/a", {(std::uint64_t{1} << 63U) - 9, 8, false, 0, 1}));
  PlanInput input = collector.finish({.region_bytes = std::uint64_t{1} << 60U}).value();
  input.moments = {requests_at_moments(collector.requests_of(input).front())};
  const DescribedServers servers{unlike_servers(GiB, 2), {std::vector<std::string>(12), std::vector<std::string>(4)}};
  const TriedPlan plan = make_plan(input, servers, {}).value();
  CHECK(!plan.trial);
  CHECK(checked(plan.plan).has_value());
}

TEST_CASE("trial: a layout in place is not given up for an even one, and no request means no trial of layouts") {
  PlanCollector collector = sweep(4, 16 * MiB);
  PlanInput input = collector.finish({}).value();
  const DescribedServers servers{unlike_servers(16 * MiB, 4),
                                 {std::vector<std::string>(12), std::vector<std::string>(4)}};
  input.moments = {requests_at_moments(collector.requests_of(input).front(), 1024)};
  input.current.assign(input.regions.size(), Stripes{64 * KiB, 0});
  const TriedPlan kept = make_plan(input, servers, {}).value();
  REQUIRE(kept.trial);
  CHECK(kept.trial->chosen != PlanTrial::Chosen::even);
  input.moments = {{}};
  CHECK(make_plan(input, servers, {}).value().trial->chosen == PlanTrial::Chosen::spread);
}

}  // namespace iosig
