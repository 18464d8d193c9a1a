// The engine against times worked out by hand: requests alone, queues, links, rounds.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "iosig/base/mix.h"
#include "iosig/simulate/engine.h"

using namespace iosig;
using namespace iosig::simulate;

namespace {

constexpr double MB = 1e6;

DiskCosts disk(double start_s, double bytes_per_s) {
  return {.start_s = start_s, .near_start_s = start_s, .bytes_per_s = bytes_per_s};
}

/// `servers` equal ones, a client on each of `clients` nodes, one layout with equal stripes.
System system_of(std::uint32_t servers, std::uint32_t clients, const DiskCosts& costs, double link_bytes_per_s,
                 std::uint64_t stripe_bytes) {
  System system;
  std::vector<Stripe> stripes;
  for (std::uint32_t n = 0; n < servers; ++n) {
    system.servers.push_back({costs, costs, link_bytes_per_s});
    stripes.push_back({n, stripe_bytes});
  }
  for (std::uint32_t n = 0; n < clients; ++n) {
    system.nodes.push_back({link_bytes_per_s});
    system.clients.push_back({.node = n});
  }
  system.layouts.emplace_back(stripes);
  return system;
}

/// Each client sends `count` requests like `request`, at the offset that `offset_of` gives.
template <class OffsetOf>
Totals totals_of(const System& system, std::uint64_t count, ClientRequest request, OffsetOf offset_of) {
  std::vector<std::uint64_t> sent(system.clients.size());
  auto totals = run(system, [&](std::uint32_t client, double, ClientRequest& next) {
    next = request;
    next.offset = offset_of(client, sent[client]);
    return sent[client]++ < count;
  });
  REQUIRE(totals);
  return *totals;
}

Totals totals_of(const System& system, std::uint64_t count, const ClientRequest& request) {
  return totals_of(system, count, request, [&](auto, auto) { return request.offset; });
}

}  // namespace

TEST_CASE("engine: a request alone takes latency, start-up, disk and the slower link, read or written") {
  System system = system_of(1, 1, disk(0.008, 100 * MB), 125 * MB, 1 << 20);
  system.latency_s = 0.0001;
  const double expected_s = 0.0001 + 0.008 + 0.01 + 0.008;  // 1 MB: 10 ms of the disk, 8 ms of the links
  CHECK(totals_of(system, 1, {.bytes = 1'000'000}).end_s == doctest::Approx(expected_s));
  CHECK(totals_of(system, 1, {.bytes = 1'000'000, .is_write = true}).end_s == doctest::Approx(expected_s));
  system.nodes[0].link_bytes_per_s = 50 * MB;  // 20 ms: the client's link is the slower one now
  CHECK(totals_of(system, 1, {.bytes = 1'000'000}).end_s == doctest::Approx(expected_s + 0.012));
  CHECK(totals_of(system, 1, {.bytes = 1'000'000, .is_write = true}).end_s == doctest::Approx(expected_s + 0.012));
}

TEST_CASE("engine: parts on several servers are served at once, and pass the client's link one after the other") {
  const System system = system_of(4, 1, disk(0.01, 100 * MB), 100 * MB, 250'000);
  // Disks: 10 + 2.5 ms. All four parts then want the client's link at once: 4 times 2.5 ms.
  CHECK(totals_of(system, 1, {.bytes = 1'000'000}).end_s == doctest::Approx(0.0125 + 0.010));
  // Written parts leave the client in turn; the last reaches its disk 10 ms later.
  CHECK(totals_of(system, 1, {.bytes = 1'000'000, .is_write = true}).end_s == doctest::Approx(0.010 + 0.0125));
}

TEST_CASE("engine: a disk serves first in, first out; the second of two clients waits for the first") {
  const System system = system_of(1, 2, disk(0.01, 100 * MB), 1e15, 1 << 20);
  const Totals totals = totals_of(system, 3, {.bytes = 1'000'000});
  CHECK(totals.end_s == doctest::Approx(6 * 0.02));
  // Sojourns: 20 ms, then 40 ms for each request of either client.
  CHECK(totals.latency_s == doctest::Approx(0.02 + 5 * 0.04));
  CHECK(totals.servers[0].disk_s == doctest::Approx(6 * 0.02));
}

TEST_CASE("engine: when disks are the bottleneck, throughput is theirs") {
  // 32 clients, whole requests of 100 KB in turn on 4 disks of 5 + 1 ms: 4 / 6 ms.
  const System system = system_of(4, 32, disk(0.005, 100 * MB), 1e15, 100'000);
  const Totals totals = totals_of(system, 200, {.bytes = 100'000},
                                  [](std::uint32_t client, std::uint64_t sent) { return (client + sent) * 100'000; });
  CHECK(totals.requests == 32 * 200);
  CHECK(totals.bytes_per_s() == doctest::Approx(4 * 100'000 / 0.006).epsilon(0.01));
}

TEST_CASE("engine: when the servers' links are the bottleneck, throughput is theirs within 4 %, read and written") {
  const System system = system_of(4, 32, disk(0.0001, 2000 * MB), 117 * MB, 128 << 10);
  for (const bool is_write : {false, true}) {
    CAPTURE(is_write);
    const Totals totals = totals_of(system, 100, {.bytes = 512 << 10, .is_write = is_write});
    CHECK(totals.bytes_per_s() == doctest::Approx(4 * 117 * MB).epsilon(0.04));
  }
}

TEST_CASE("engine: when the clients' link is the bottleneck, throughput is its own within 4 %") {
  System system = system_of(8, 4, disk(0.0001, 2000 * MB), 117 * MB, 128 << 10);
  for (Client& client : system.clients) client.node = 0;  // four processes on one node
  for (const bool is_write : {false, true}) {
    CAPTURE(is_write);
    const Totals totals = totals_of(system, 100, {.bytes = 1 << 20, .is_write = is_write});
    CHECK(totals.bytes_per_s() == doctest::Approx(117 * MB).epsilon(0.04));
  }
}

TEST_CASE("engine: a disk starts up anew for another region, and not within one") {
  System system = system_of(1, 1, {.start_s = 0.008, .near_start_s = 0.005, .bytes_per_s = 100 * MB}, 1e15, 1 << 20);
  const auto run_regions = [&](std::uint32_t regions) {
    std::uint32_t sent = 0;
    return run(system,
               [&](std::uint32_t, double, ClientRequest& next) {
                 next = {.region = sent % regions, .bytes = 100'000};
                 return sent++ < 10;
               })
        ->end_s;
  };
  CHECK(run_regions(1) == doctest::Approx(0.009 + 9 * 0.006));
  CHECK(run_regions(2) == doctest::Approx(10 * 0.009));
}

TEST_CASE("engine: start-ups are uniform around their mean, and the same for the same seed") {
  System system = system_of(1, 1, {.start_s = 0.008, .spread = 0.5, .bytes_per_s = 1e15}, 1e15, 1 << 20);
  const auto times_of = [&] {
    std::vector<double> asked;
    std::uint32_t sent = 0;
    REQUIRE(run(system, [&](std::uint32_t, double now_s, ClientRequest& next) {
      next = {.region = ++sent, .bytes = 1};
      asked.push_back(now_s);
      return sent <= 4000;
    }));
    std::adjacent_difference(asked.begin(), asked.end(), asked.begin());
    asked.erase(asked.begin());
    return asked;
  };
  const auto times = times_of();
  CHECK(times == times_of());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  CHECK(mean == doctest::Approx(0.008).epsilon(0.02));  // standard error: 0.0023 / sqrt(4000) = 0.5 %
  const auto [least, greatest] = std::ranges::minmax(times);
  CHECK(least >= doctest::Approx(0.004));
  CHECK(greatest <= doctest::Approx(0.012));
  CHECK(greatest - least > 0.0078);
  // The first draw by hand: SplitMix64 of seed 1, server 0, part 0.
  const double first = static_cast<double>(mixed(mixed(mixed(1) + 0) + 0) >> 11) * 0x1p-52 - 1;
  CHECK(times[0] == doctest::Approx(0.008 * (1 + 0.5 * first)));
  system.seed = 2;
  CHECK(times != times_of());
}

TEST_CASE("engine: clients in step wait for the slowest of the round") {
  System system = system_of(2, 2, disk(0, 100 * MB), 1e15, 1'000'000);
  const auto two_sizes = [&] {  // one client reads 1 MB of server 0, the other half as much of server 1
    std::array<int, 2> sent{};
    return run(system, [&](std::uint32_t client, double, ClientRequest& next) {
      next = {.offset = client * 1'000'000ULL, .bytes = client == 0 ? 1'000'000ULL : 500'000ULL};
      return sent.at(client)++ < (client == 0 ? 5 : 9);
    });
  };
  CHECK(two_sizes()->end_s == doctest::Approx(0.05));  // 5 of 10 ms beside 9 of 5 ms
  for (Client& client : system.clients) client.is_in_step = true;
  // 5 rounds of 10 ms, then the other client is alone: 4 of 5 ms.
  CHECK(two_sizes()->end_s == doctest::Approx(0.07));
}

TEST_CASE("engine: a client that thinks sends later, and its time to think is not in the latency") {
  const System system = system_of(1, 1, disk(0.01, 1e15), 1e15, 1 << 20);
  const Totals totals = totals_of(system, 3, {.bytes = 1, .think_s = 0.5});
  CHECK(totals.end_s == doctest::Approx(3 * 0.51));
  CHECK(totals.latency_s == doctest::Approx(3 * 0.01));
}

TEST_CASE("engine: clients that are not counted load the servers and nothing else") {
  System system = system_of(1, 2, disk(0.01, 1e15), 1e15, 1 << 20);
  system.clients[1].is_counted = false;
  const Totals totals = totals_of(system, 5, {.bytes = 10});
  CHECK(totals.requests == 5);
  CHECK(totals.bytes == 50);
  CHECK(totals.servers[0].parts == 10);
  CHECK(totals.end_s == doctest::Approx(0.09));  // the fifth of the first client, with four of the other between
}

TEST_CASE("layout: what servers get of a request agrees with counting bytes one by one") {
  const std::array<Stripe, 4> stripes{{{0, 3}, {1, 0}, {2, 5}, {3, 2}}};
  const Layout layout(stripes);
  CHECK(layout.period_bytes() == 10);
  std::vector<Layout::Part> parts;
  for (std::uint64_t offset = 0; offset < 23; ++offset)
    for (std::uint64_t length = 1; length < 37; ++length) {
      CAPTURE(offset);
      CAPTURE(length);
      std::array<std::uint64_t, 4> counted{}, told{};
      for (std::uint64_t at = offset; at < offset + length; ++at) ++counted.at(at % 10 < 3 ? 0 : at % 10 < 8 ? 2 : 3);
      layout.split(offset, length, parts);
      for (const Layout::Part& part : parts) {
        CHECK(told.at(part.server) == 0);
        CHECK(part.bytes > 0);
        told.at(part.server) = part.bytes;
      }
      CHECK(told == counted);
    }
}

TEST_CASE("engine: what cannot be simulated is refused with the number that is wrong") {
  const System sound = system_of(2, 1, disk(0.01, 100 * MB), 100 * MB, 1 << 20);
  const auto message_of = [](const System& system, ClientRequest request = {.bytes = 1}) {
    const auto told = run(system, [&, sent = 0](std::uint32_t, double, ClientRequest& next) mutable {
      next = request;
      return sent++ < 1;
    });
    if (told) return std::string();
    CHECK(told.error().kind == ErrorKind::usage);
    return told.error().message;
  };
  const auto changed = [&](auto change) {
    System system = sound;
    change(system);
    return message_of(system);
  };
  CHECK(message_of(sound).empty());
  CHECK(changed([](System& s) { s.servers.clear(); }).starts_with("0 servers"));
  CHECK(changed([](System& s) { s.servers[1].read.bytes_per_s = 0; }).starts_with("server 1: read rate 0"));
  CHECK(changed([](System& s) { s.servers[0].write.start_s = -1; }).starts_with("server 0: write start-up -1"));
  CHECK(changed([](System& s) { s.servers[0].read.spread = 1.5; }).starts_with("server 0: read spread 1.5"));
  CHECK(changed([](System& s) { s.servers[0].link_bytes_per_s = NAN; }).starts_with("server 0: link nan"));
  CHECK(changed([](System& s) { s.nodes[0].link_bytes_per_s = INFINITY; }).starts_with("node 0: link inf"));
  CHECK(changed([](System& s) { s.clients[0].node = 1; }).starts_with("client 0: node 1"));
  CHECK(changed([](System& s) { s.latency_s = -1; }).starts_with("latency -1"));
  const auto with_stripes = [&](std::vector<Stripe> stripes) {
    return changed([&](System& s) { s.layouts = {Layout(stripes)}; });
  };
  CHECK(with_stripes({{0, 0}}).starts_with("layout 0: every stripe has 0 bytes"));
  CHECK(with_stripes({{2, 1}}).starts_with("layout 0: server 2"));
  CHECK(with_stripes({{1, 1}, {1, 1}}).starts_with("layout 0: server 1"));
  CHECK(with_stripes({{0, 1ULL << 61}, {1, 1ULL << 61}}).ends_with("2^62 bytes or more together"));
  CHECK(message_of(sound, {.bytes = 0}).starts_with("client 0: request of 0 bytes"));
  CHECK(message_of(sound, {.offset = 1ULL << 63, .bytes = 1}).starts_with("client 0: request of 1 bytes at 92233"));
  CHECK(message_of(sound, {.layout = 1, .bytes = 1}).starts_with("client 0: request of 1 bytes at 0 with layout 1"));
}
