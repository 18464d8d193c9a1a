// Stripe sizes: the paper's algorithm against its text, ours against an exhaustive search over all pairs.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "iosig/base/units.h"
#include "iosig/decide/striping.h"

using namespace iosig;

namespace {

/// The physical world: 8 ms disks with 100 MB/s, flash, links of 117 MB/s.
Servers physical(std::uint32_t m, std::uint32_t n, std::uint32_t p) {
  return {.classes = {{"hdd", m, {8e-3, 1e-8}, {8e-3, 1e-8}, std::nullopt},
                      {"ssd", n, {1e-4, 4e-9}, {1.5e-4, 1 / 180e6}, std::nullopt}},
          .network = {1e-4, 1 / 117e6},
          .processes = p,
          .processes_per_node = 1};
}

Region region_of(std::vector<RequestGroup> groups) {
  return {.file = 0, .offset = 0, .length = default_region_bytes, .groups = std::move(groups)};
}

StripeChoice paper(const Servers& servers, std::uint64_t r, bool is_literal = false) {
  PaperStripeOptions options;
  options.is_literal = is_literal;
  options.charges_idle = true;  // as printed
  const std::vector<Region> regions{region_of({{.length = r}})};
  return paper_stripes(regions, servers, options)->at(0);
}

/// The time of the busiest server of a closed loop, from the busy times of every server, request by request: written
/// apart from cost/striping.
double simulated_bound(const Servers& servers, const Stripes& stripes, const std::vector<Request>& requests) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> turns;  // server, stripe
  for (std::uint32_t server = 0; server < server_count(servers); ++server)
    turns.emplace_back(server, stripes[class_of_server(servers, server)]);
  std::vector<double> disk(turns.size()), link(turns.size());
  double latency = 0, client = 0;
  std::uint64_t period = 0;
  for (const auto& turn : turns) period += turn.second;
  for (const Request& request : requests) {
    std::map<std::uint32_t, std::uint64_t> bytes;
    for (std::uint64_t at = request.offset, left = request.length; left > 0;) {
      std::uint64_t within = at % period;
      std::size_t turn = 0;
      for (; within >= turns[turn].second; ++turn) within -= turns[turn].second;
      const std::uint64_t some = std::min(left, turns[turn].second - within);
      bytes[turns[turn].first] += some;
      at += some;
      left -= some;
    }
    double slowest = 0;
    for (const auto& [server, some] : bytes) {
      const ServerClass& of = servers.classes[class_of_server(servers, server)];
      const ServiceTime& service = request.is_write ? of.write : of.read;
      const double busy = service.startup_s + static_cast<double>(some) * service.s_per_byte;
      disk[server] += busy;
      link[server] += static_cast<double>(some) * servers.network.s_per_byte;
      slowest = std::max(slowest, busy);
    }
    const double on_link = static_cast<double>(request.length) * servers.network.s_per_byte;
    latency += static_cast<double>(bytes.size()) * servers.network.connect_s + on_link + slowest;
    client += on_link;
  }
  const auto count = static_cast<double>(requests.size());
  const double at_a_time = std::min<double>(count, servers.processes);
  const double busiest =
      std::max({*std::ranges::max_element(disk), *std::ranges::max_element(link), client / at_a_time});
  return std::max({busiest, (1 - 1 / at_a_time) * busiest + latency / count, latency / at_a_time});
}

/// The least bound over all pairs of multiples of `unit` up to `most`.
double exhaustive(const Servers& servers, const std::vector<Request>& requests, std::uint64_t unit,
                  std::uint64_t most) {
  double best = std::numeric_limits<double>::infinity();
  for (std::uint64_t h = 0; h <= most; h += unit)
    for (std::uint64_t s = 0; s <= most; s += unit)
      if (servers.classes[0].count * h + servers.classes[1].count * s > 0)
        best = std::min(best, simulated_bound(servers, {h, s}, requests));
  return best;
}

}  // namespace

TEST_CASE("paper stripes: as printed, every request gets <0, 4 KB>") {
  for (const std::uint64_t r : {64 * KiB, 512 * KiB, 4 * MiB})
    CHECK(paper(physical(12, 4, 32), r, true).stripes == Stripes{0, 4096});
}

TEST_CASE("paper stripes: with the constraint, the least cost of Table 2 over all pairs of its grid") {
  for (const auto& [m, n] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{12, 4}, {8, 8}, {4, 12}}) {
    const Servers servers = physical(m, n, 32);
    for (const std::uint64_t r : {256 * KiB, 512 * KiB, MiB}) {
      double best = std::numeric_limits<double>::infinity();
      Stripes expected;
      for (std::uint64_t h = 0; h * (m + n) <= r; h += 4096)
        for (std::uint64_t s = h + 4096; s * n <= r; s += 4096) {
          if (m * h + n * s < r) continue;
          const double seconds = table2_cost(servers, h, s, r, false).seconds();
          if (seconds < best) expected = {h, s};
          best = std::min(best, seconds);
        }
      const StripeChoice choice = paper(servers, r);
      CHECK(choice.stripes == expected);
      CHECK(choice.seconds == doctest::Approx(best).epsilon(1e-9));
      CHECK_FALSE(choice.is_fallback);
    }
  }
}

TEST_CASE("paper stripes: idle HServers cost no start-up, unless Table 2 is taken literally") {
  const Servers servers = physical(12, 4, 32);
  const std::vector<Region> regions{region_of({{.length = 512 * KiB}})};
  // SServers alone take 32 (0.1 ms + 128 KB at 250 MB/s) = 20 ms and the links' 36 ms; each HServer would take 8 ms.
  CHECK(paper_stripes(regions, servers)->at(0).stripes == Stripes{0, 128 * KiB});
  CHECK(paper(servers, 512 * KiB).stripes[0] > 0);
}

TEST_CASE("paper stripes: no pair covers small requests; the limit depends on the servers") {
  struct Limit {
    std::uint32_t m, n;
    std::uint64_t none, some;
  };
  for (const auto& [m, n, none, some] :
       {Limit{12, 4, 8 * KiB, 16 * KiB}, Limit{8, 8, 16 * KiB, 32 * KiB}, Limit{4, 12, 128 * KiB, 256 * KiB}}) {
    CHECK(paper(physical(m, n, 32), none).is_fallback);
    CHECK_FALSE(paper(physical(m, n, 32), some).is_fallback);
  }
  CHECK(paper(physical(12, 4, 32), 8 * KiB).stripes == Stripes{0, 4096});     // 2 KB, on the grid
  CHECK(paper(physical(4, 12, 32), 128 * KiB).stripes == Stripes{0, 12288});  // 10923 bytes, on the grid
}

TEST_CASE("paper stripes: any number of threads gives the same, one class is refused") {
  std::vector<Region> regions;
  for (std::uint64_t n = 1; n <= 40; ++n)
    regions.push_back(region_of({{.length = n * 40000, .count = n}, {.length = 100000, .is_write = true}}));
  regions.push_back(region_of({}));
  const Servers servers = physical(12, 4, 32);
  PaperStripeOptions one, four;
  one.threads = 1;
  four.threads = 4;
  const auto a = paper_stripes(regions, servers, one), b = paper_stripes(regions, servers, four);
  for (std::size_t n = 0; n < regions.size(); ++n) {
    CHECK(a->at(n).stripes == b->at(n).stripes);
    CHECK(a->at(n).seconds == b->at(n).seconds);
  }
  CHECK(paper_stripes(regions, physical(12, 0, 32)).error().kind == ErrorKind::usage);
  const auto endless = paper_stripes(std::vector{region_of({{.length = 1ULL << 60U}})}, servers);
  CHECK(endless.error().kind == ErrorKind::usage);  // 2^44 sizes of h alone
}

TEST_CASE("stripes: fill_servers lets all used servers end at the same time") {
  const Servers servers = physical(12, 4, 1);
  // 16 KB: the flash ends before a disk would have started.
  const auto small = fill_servers(16384, servers, false);
  CHECK(small[0] == 0);
  CHECK(small[1] == doctest::Approx(4096));
  // 64 MB: 12 (T - 8 ms) / 10 ns + 4 T / (1 / 117 MB/s) = 67108864, the links limit the flash: T = 40.96 ms.
  const double seconds = (67108864 + 12 * 8e-3 / 1e-8) / (12 / 1e-8 + 4 * 117e6);
  const auto large = fill_servers(67108864, servers, false);
  CHECK(large[0] == doctest::Approx((seconds - 8e-3) / 1e-8));
  CHECK(large[1] == doctest::Approx(seconds * 117e6));
  CHECK(12 * large[0] + 4 * large[1] == doctest::Approx(67108864));
  CHECK(fill_servers(0, servers, false) == std::vector<double>{0, 0});
}

TEST_CASE("stripes: under load, flash shares each request, and disks serve whole ones") {
  const Servers servers = physical(12, 4, 32);
  const std::vector<RequestGroup> groups{
      {.length = 512 * KiB, .stride = 512 * KiB, .count = 100000, .places = 1U << 20}};
  const StripeChoice slow = choose_stripes(groups, servers, {}, {true, false});
  CHECK(slow.stripes[0] % (512 * KiB) == 0);
  CHECK(slow.seconds == doctest::Approx(100000 * (8e-3 + 524288e-8) / 12));  // 475 MB/s
  const StripeChoice fast = choose_stripes(groups, servers, {}, {false, true});
  CHECK(fast.stripes == Stripes{0, 128 * KiB});
  CHECK(fast.seconds == doctest::Approx(1e5 * 524288 / 4 / 117e6));  // the links: 468 MB/s
}

TEST_CASE("stripes: within 1 % of an exhaustive search, for single groups and mixtures") {
  std::mt19937_64 random(7);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  const auto pick = [&](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
  for (int n = 0; n < 25; ++n) {
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random() % 1000) / 1000;
    };
    Servers servers = physical(static_cast<std::uint32_t>(pick(1, 4)), static_cast<std::uint32_t>(pick(1, 3)),
                               static_cast<std::uint32_t>(std::array{1, 2, 8, 64}[pick(0, 3)]));
    servers.classes[0].read = {uniform(0, 8e-3), 1 / uniform(2e7, 2e8)};
    servers.classes[1].read = {uniform(0, 5e-4), 1 / uniform(1e8, 1e9)};
    servers.network = {uniform(0, 2e-4), 1 / uniform(5e7, 1e9)};
    std::vector<RequestGroup> groups;
    std::vector<Request> requests;
    constexpr std::uint64_t unit = 4096;
    for (std::uint64_t kinds = pick(1, 2); kinds > 0; --kinds) {
      const std::uint64_t length = unit * pick(1, 24), stride = pick(0, 2) == 0 ? unit * pick(1, 8) : length;
      RequestGroup group{.offset = unit * pick(0, 9), .length = length, .stride = stride, .count = pick(5, 40)};
      groups.push_back(group);
      for (std::uint64_t k = 0; k < group.count; ++k)
        requests.push_back({.offset = group.offset + k * stride, .length = length});
    }
    const double best = exhaustive(servers, requests, unit, 40 * unit);
    StripeOptions options;
    options.unit_bytes = unit;
    const StripeChoice choice = choose_stripes(groups, servers, options);
    CHECK(choice.seconds == doctest::Approx(simulated_bound(servers, choice.stripes, requests)).epsilon(1e-9));
    INFO("case ", n, " ours <", choice.stripes[0] / unit, ", ", choice.stripes[1] / unit, "> ", choice.tried);
    CHECK(choice.seconds <= 1.01 * best);
  }
}

TEST_CASE("stripes: one class, a thousand servers in many classes, no requests") {
  const std::vector<RequestGroup> groups{{.length = MiB, .stride = MiB, .count = 1000, .places = 1U << 20}};
  CHECK(choose_stripes(groups, physical(12, 0, 4)).stripes[1] % 4096 == 0);
  CHECK(choose_stripes(groups, physical(12, 0, 4)).seconds > 0);
  Servers many;
  for (int n = 0; n < 20; ++n) many.classes.push_back({"c", 50, {1e-3 * n, 1e-8}, {1e-3 * n, 1e-8}, std::nullopt});
  const StripeChoice choice = choose_stripes(groups, many);
  CHECK(checked(choice.stripes, many));
  const StripeChoice huge =
      choose_stripes(std::vector<RequestGroup>{{.length = max_bytes, .count = 2}}, physical(2, 2, 4));
  CHECK(checked(huge.stripes, physical(2, 2, 4)));
  Servers unlike = physical(1, 1, 1);  // 1e12 times as fast
  unlike.network.s_per_byte = 0;
  unlike.classes[1].read = {0, 1e-20};
  CHECK(choose_stripes(groups, unlike).stripes[1] > 0);
  CHECK(choose_stripes({}, physical(2, 2, 1)).stripes == Stripes{MiB, 0});
  CHECK(choose_stripes(std::vector<RequestGroup>{{.length = 0, .count = 5}}, physical(2, 2, 1)).seconds == 0);
}
