// Tables 2 and 3 of the H2DP paper against the general form, and both against bytes dealt out one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "iosig/base/units.h"
#include "iosig/cost/striping.h"

using namespace iosig;

namespace {

/// 12 HServers and 4 SServers of made-up, unlike times.
Servers hybrid(std::uint32_t m, std::uint32_t n, std::uint32_t p, std::uint32_t c) {
  return {.classes = {{"hdd", m, {8e-3, 1e-8}, {9e-3, 1.2e-8}, std::nullopt},
                      {"ssd", n, {1e-4, 4e-9}, {1.5e-4, 5.5e-9}, std::nullopt}},
          .network = {1e-4, 8.5e-9},
          .processes = p,
          .processes_per_node = c};
}

/// The bytes of each server, dealt byte by byte.
std::map<std::uint32_t, std::uint64_t> dealt(const Servers& servers, const Stripes& stripes, std::uint64_t offset,
                                             std::uint64_t length) {
  std::vector<std::uint32_t> period;
  for (std::uint32_t server = 0; server < server_count(servers); ++server)
    period.insert(period.end(), stripes[class_of_server(servers, server)], server);
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (std::uint64_t at = offset; at < offset + length; ++at) ++bytes[period[at % period.size()]];
  return bytes;
}

double seconds(const Servers& servers, const Stripes& stripes, const Request& request) {
  return request_cost(servers, StripeMap(servers, stripes), request).seconds();
}

}  // namespace

TEST_CASE("striping cost: Table 2 by hand: 4 HServers and 2 SServers, 64 KB, 8 processes") {
  const Servers servers = hybrid(4, 2, 8, 2);
  // h = 8 KB, s = 16 KB. p = 8 <= c (m + n) = 12: TE = 12 e. TX = max(2 * 65536 t, 8 * 16384 t) = 131072 t.
  // Reads: 8 max(8 ms + 8192 * 10 ns, 0.1 ms + ...) = 8 * 8.08192 ms.
  const RequestCost cost = table2_cost(servers, 8192, 16384, 65536, false);
  CHECK(cost.connect_s == doctest::Approx(12e-4));
  CHECK(cost.transfer_s == doctest::Approx(131072 * 8.5e-9));
  CHECK(cost.storage_s == doctest::Approx(8 * 8.08192e-3));
  // p = 32 > 12: TE = 32 e.
  CHECK(table2_cost(hybrid(4, 2, 32, 2), 8192, 16384, 65536, false).connect_s == doctest::Approx(32e-4));
}

TEST_CASE("striping cost: the general form equals Tables 2 and 3 for aligned requests") {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 500; ++n) {
    const auto pick = [&](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
    const auto m = static_cast<std::uint32_t>(pick(1, 12)), k = static_cast<std::uint32_t>(pick(1, 8));
    const Servers servers =
        hybrid(m, k, static_cast<std::uint32_t>(pick(1, 64)), static_cast<std::uint32_t>(pick(1, 4)));
    const std::uint64_t h = 4096 * pick(1, 16), s = h + 4096 * pick(0, 64), r = m * h + k * s;
    const bool is_write = pick(0, 1) == 1;
    const Request aligned{.offset = r * pick(0, 9), .length = r, .is_write = is_write};
    CHECK(seconds(servers, {h, s}, aligned) ==
          doctest::Approx(table2_cost(servers, h, s, r, is_write).seconds()).epsilon(1e-9));
    const Request slow_only{.offset = m * h * pick(0, 9), .length = m * h, .is_write = is_write};
    CHECK(seconds(servers, {h, 0}, slow_only) ==
          doctest::Approx(table3_cost(servers, m * h, is_write).seconds()).epsilon(1e-9));
  }
}

TEST_CASE("striping cost: h = 0 pays no start-up of HServers, and h > s transfers h") {
  const Servers servers = hybrid(2, 2, 1, 1);
  const Request request{.offset = 0, .length = 8192, .is_write = false};
  const RequestCost fast = request_cost(servers, StripeMap(servers, {0, 4096}), request);
  CHECK(fast.storage_s == doctest::Approx(1e-4 + 4096 * 4e-9));
  CHECK(fast.connect_s == doctest::Approx(2e-4));                                        // two connections, not four
  CHECK(table2_cost(servers, 0, 4096, 8192, false).storage_s == doctest::Approx(8e-3));  // as printed
  const Servers many = hybrid(2, 2, 32, 1);  // 32 requests of 3072 bytes at one server, not of 1024
  const RequestCost slow = request_cost(many, StripeMap(many, {3072, 1024}), request);
  CHECK(slow.transfer_s == doctest::Approx(32 * 3072 * 8.5e-9));
}

TEST_CASE("striping cost: each server gets the bytes that dealing them one by one gives it") {
  std::mt19937_64 random(2);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 400; ++n) {
    Servers servers = hybrid(1 + random() % 4, random() % 4, 1, 1);
    if (random() % 2 == 0) servers.classes.push_back({"nvm", 2, {0, 1e-9}, {0, 1e-9}, std::nullopt});
    Stripes stripes;
    for (std::size_t number = 0; number < servers.classes.size(); ++number) stripes.push_back(random() % 20);
    stripes[0] += 1;
    const std::uint64_t offset = random() % 500, length = random() % 300;
    const StripeMap map(servers, stripes);
    std::vector<StripePart> parts;
    map.parts(offset, length, parts);
    const auto expected = dealt(servers, stripes, offset, length);
    CHECK(parts.size() == expected.size());
    for (const StripePart& part : parts) {
      CHECK(part.bytes == expected.at(part.server));
      const auto before = dealt(servers, stripes, 0, offset);
      CHECK(part.offset == (before.contains(part.server) ? before.at(part.server) : 0));
    }
    const auto held = dealt(servers, stripes, 0, length);
    std::vector<std::uint64_t> most(servers.classes.size());
    for (std::uint32_t server = 0; server < server_count(servers); ++server) {
      const std::uint64_t bytes = held.contains(server) ? held.at(server) : 0;
      CHECK(map.bytes_on(server, length) == bytes);
      std::uint64_t& of_class = most[class_of_server(servers, server)];
      of_class = std::max(of_class, bytes);
    }
    CHECK(bytes_on_classes(servers, stripes, length) == most);
  }
}

TEST_CASE("striping cost: a rotated map moves the stripes within their class, and keeps their sizes") {
  const Servers servers = hybrid(3, 2, 1, 1);
  std::vector<StripePart> parts;
  StripeMap(servers, {10, 20}, 4).parts(0, 70, parts);
  // Rotation 4: HServers 1 2 0, SServers 3 4 (4 mod 2 = 0).
  const std::vector<StripePart> expected{{1, 0, 10}, {2, 0, 10}, {0, 0, 10}, {3, 0, 20}, {4, 0, 20}};
  CHECK(parts == expected);
}

TEST_CASE("striping cost: requests at the end of the largest file, and of 0 bytes") {
  const Servers servers = hybrid(2, 2, 1, 1);
  const StripeMap map(servers, {4096, 8192});
  std::vector<StripePart> parts;
  map.parts(max_bytes - 5000, 5000, parts);
  std::uint64_t sum = 0;
  for (const StripePart& part : parts) sum += part.bytes;
  CHECK(sum == 5000);
  map.parts(100, 0, parts);
  CHECK(parts.empty());
  CHECK(request_cost(servers, map, {.offset = 5, .length = 0}).seconds() == 0);
}

TEST_CASE("striping cost: impossible stripes and servers are refused") {
  const Servers servers = hybrid(2, 2, 1, 1);
  CHECK(checked(Stripes{0, 1}, servers));
  CHECK_FALSE(checked(Stripes{0, 0}, servers));
  CHECK_FALSE(checked(Stripes{1}, servers));
  CHECK_FALSE(checked(Stripes{max_bytes / 2, 1}, servers));
  CHECK(checked(servers));
  CHECK_FALSE(checked(Servers{}));
  CHECK_FALSE(checked(hybrid(0, 0, 1, 1)));
  CHECK_FALSE(checked(hybrid(2, 2, 0, 1)));
  Servers slow = servers;
  slow.classes[1].write.s_per_byte = std::numeric_limits<double>::infinity();  // a speed of 0
  CHECK(checked(slow).error().message.find("'ssd': the write") != std::string::npos);
}

TEST_CASE("load: the sum over single requests, for progressions and scattered groups") {
  const Servers servers = hybrid(3, 2, 8, 2);
  const Stripes stripes{4096, 12288};
  // 7 requests of 10000 bytes, 5000 apart, one by one.
  std::vector<RequestGroup> single;
  for (std::uint64_t n = 0; n < 7; ++n) single.push_back({.offset = 100 + n * 5000, .length = 10000});
  const RequestGroup group{.offset = 100, .length = 10000, .stride = 5000, .count = 7};
  const Load one = load_of(servers, stripes, single), all = load_of(servers, stripes, std::vector{group});
  CHECK(all.latency_s == doctest::Approx(one.latency_s).epsilon(1e-12));
  CHECK(all.classes[1].storage_s == doctest::Approx(one.classes[1].storage_s).epsilon(1e-12));
  CHECK(all.classes[0].network_s == doctest::Approx(one.classes[0].network_s).epsilon(1e-12));
  // Period 36864, whole requests of 4096: 9 phases; 3 on HServers, 6 on SServers, each the same number of times.
  const RequestGroup scattered{.length = 4096, .stride = 4096, .count = 900, .places = 900};
  const Load even = load_of(servers, stripes, std::vector{scattered});
  CHECK(even.classes[0].storage_s == doctest::Approx(100 * (8e-3 + 4096e-8)));
  CHECK(even.classes[1].mean_storage_s == doctest::Approx(300 * (1e-4 + 4096 * 4e-9)));
  CHECK(even.client_s == doctest::Approx(900 * 4096 * 8.5e-9 / 4));  // 8 processes, 2 on a node
}

TEST_CASE("load: a group of many phases is close to the sum over all of them") {
  const Servers servers = hybrid(3, 2, 1, 1);
  const Stripes stripes{5000, 9001};  // a prime step: 33002 phases
  const RequestGroup group{.length = 3000, .stride = 1, .count = 33002, .places = 33002};
  const Load load = load_of(servers, stripes, std::vector{group});
  double latency_s = 0, busy_s = 0;
  for (std::uint64_t at = 0; at < group.count; at += 7) {
    const Load one = load_of(servers, stripes, std::vector<RequestGroup>{{.offset = at, .length = 3000}});
    latency_s += 7 * one.latency_s;
    busy_s += 7 * one.classes[0].mean_storage_s;
  }
  CHECK(load.latency_s == doctest::Approx(latency_s).epsilon(0.005));
  CHECK(load.classes[0].mean_storage_s == doctest::Approx(busy_s).epsilon(0.005));
  CHECK(load.classes[0].storage_s == doctest::Approx(load.classes[0].mean_storage_s));
}

TEST_CASE("loaded time: together adds the regions' busiest servers, spread finds the busiest of all") {
  const Servers servers = hybrid(1, 1, 4, 1);
  const std::vector<RequestGroup> some{{.length = 100, .stride = 100, .count = 10000}};
  const std::vector<Load> regions{load_of(servers, {100, 0}, some), load_of(servers, {0, 100}, some)};
  const double slow_s = 1e4 * (8e-3 + 100e-8), fast_s = 1e4 * (1e-4 + 100 * 4e-9);
  CHECK(loaded_seconds(servers, regions, Contention::together) == doctest::Approx(slow_s + fast_s));
  CHECK(loaded_seconds(servers, regions, Contention::spread) == doctest::Approx(slow_s));
}

TEST_CASE("loaded time: few requests keep few processes busy, and the last one takes its own time besides") {
  const Servers servers = hybrid(2, 1, 32, 1);
  const auto read = [&](std::uint64_t offset) {
    return load_of(servers, {1000, 0}, std::vector<RequestGroup>{{.offset = offset, .length = 1000}});
  };
  const double disk_s = 8e-3 + 1000e-8, alone_s = 1e-4 + 1000 * 8.5e-9 + disk_s;
  CHECK(busiest_s(servers, read(0)) == doctest::Approx(alone_s));
  // Two on one disk: the second waits half of the disk's time, or more.
  const std::vector<Load> one_disk{read(0), read(1000)}, two_disks{read(0), read(0)};  // region 1 begins at disk 1
  CHECK(loaded_seconds(servers, one_disk, Contention::spread) == doctest::Approx(0.5 * 2 * disk_s + alone_s));
  CHECK(loaded_seconds(servers, two_disks, Contention::spread) == doctest::Approx(0.5 * disk_s + alone_s));
  CHECK(loaded_seconds(servers, one_disk, Contention::together) == doctest::Approx(2 * alone_s));
}

TEST_CASE("load: a hot part keeps few servers busy, whether few or many places of it are visited") {
  const Servers servers = hybrid(3, 2, 8, 2);
  const Stripes stripes{4096, 8192};  // a period of 28672: 7 blocks of 4096
  const auto blocks = [&](std::uint64_t first, std::uint64_t count) {
    return load_of(
        servers, stripes,
        std::vector<RequestGroup>{
            {.offset = first * 4096, .length = 4096, .stride = 4096, .count = 100 * count, .places = count}});
  };
  const double block_s = 100 * (8e-3 + 4096e-8);
  CHECK(blocks(7, 1).classes[0].storage_s == doctest::Approx(block_s));  // on server 0 only
  CHECK(blocks(7, 1).classes[0].mean_storage_s == doctest::Approx(block_s / 3));
  CHECK(blocks(7, 1).servers ==
        std::vector<ServerLoad>{{0, blocks(7, 1).classes[0].storage_s, blocks(7, 1).classes[0].network_s}});
  CHECK(blocks(0, 7).servers.empty());
  CHECK(blocks(0, 8).classes[0].storage_s == doctest::Approx(2 * block_s));  // server 0 twice
  // Single bytes of the first two blocks, at more places than are costed one by one: on servers 0 and 1 only.
  const Load bytes = load_of(
      servers, stripes, std::vector<RequestGroup>{{.length = 1, .stride = 1, .count = 80000, .places = 8192}}, 100);
  REQUIRE(bytes.servers.size() == 2);
  CHECK(bytes.servers[1].storage_s == doctest::Approx(40000 * (8e-3 + 1e-8)));
  // And of a period and these two blocks: twice on servers 0 and 1, once on server 2.
  const Load more = load_of(
      servers, stripes, std::vector<RequestGroup>{{.length = 1, .stride = 1, .count = 36864, .places = 36864}}, 700);
  REQUIRE(more.servers.size() == 5);
  CHECK(more.servers[1].storage_s == doctest::Approx(8192 * (8e-3 + 1e-8)).epsilon(0.01));
  CHECK(more.servers[2].storage_s == doctest::Approx(4096 * (8e-3 + 1e-8)).epsilon(0.01));
}
