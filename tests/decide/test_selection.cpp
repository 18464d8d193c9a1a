// Which regions get fast servers: H2DP's ranking by hand, ours against dynamic programs and all selections.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "iosig/base/units.h"
#include "iosig/decide/selection.h"

using namespace iosig;

namespace {

Servers two_classes(std::uint64_t slow_room, std::uint64_t fast_room) {
  return {
      .classes = {{"hdd", 2, {8e-3, 1e-8}, {8e-3, 1e-8}, slow_room}, {"ssd", 2, {1e-4, 4e-9}, {1e-4, 4e-9}, fast_room}},
      .network = {0, 1e-12},
      .processes = 1000,
      .processes_per_node = 1};
}

/// An option that takes `bytes` on each fast server and `seconds`.
LayoutOption option(double seconds, std::uint64_t slow_bytes, std::uint64_t fast_bytes) {
  return {.stripes = {1, 1}, .load = {}, .server_bytes = {slow_bytes, fast_bytes}, .seconds = seconds};
}

/// The greatest benefit: a program over bytes.
double greatest_benefit(const std::vector<KnapsackItem>& items, std::uint64_t room) {
  std::vector<double> best(room + 1);
  for (const KnapsackItem& item : items)
    for (std::uint64_t bytes = room + 1; bytes-- > item.bytes;)
      best[bytes] = std::max(best[bytes], best[bytes - item.bytes] + item.benefit);
  return best[room];
}

std::pair<double, std::uint64_t> sums(const std::vector<KnapsackItem>& items, const std::vector<bool>& taken) {
  double benefit = 0;
  std::uint64_t bytes = 0;
  for (std::size_t n = 0; n < items.size(); ++n)
    if (taken[n]) {
      benefit += items[n].benefit;
      bytes += items[n].bytes;
    }
  return {benefit, bytes};
}

/// An option with given mean busy times of the two classes' storage.
LayoutOption busy(double slow_s, double fast_s, std::uint64_t fast_bytes) {
  LayoutOption option;
  option.stripes = {1, 1};
  option.load.classes = {{slow_s, 0, slow_s, 0}, {fast_s, 0, fast_s, 0}};
  option.server_bytes = {0, fast_bytes};
  option.seconds = std::max(slow_s, fast_s);
  return option;
}

/// The 512 regions of the physical world: Zipf 0.8, 12 HServers, 4 SServers that hold a sixth.
std::vector<Region> zipf_regions(std::uint64_t length) {
  std::vector<Region> regions;
  for (std::uint64_t n = 0; n < 512; ++n) {
    const auto count = static_cast<std::uint64_t>(1e5 / std::pow(static_cast<double>(n + 1), 0.8));
    regions.push_back(
        {.file = 0,
         .offset = n * default_region_bytes,
         .length = default_region_bytes,
         .groups = {{.length = length, .stride = length, .count = count, .places = default_region_bytes / length}}});
  }
  return regions;
}

Servers physical() {
  return {.classes = {{"hdd", 12, {8e-3, 1e-8}, {8e-3, 1e-8}, std::nullopt},
                      {"ssd", 4, {1e-4, 4e-9}, {1.5e-4, 1 / 180e6}, 512 * default_region_bytes / 6 / 4}},
          .network = {1e-4, 1 / 117e6},
          .processes = 32,
          .processes_per_node = 1};
}

}  // namespace

TEST_CASE("knapsack: at least 0.99 of a dynamic program, and never more than the room") {
  std::mt19937_64 random(3);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 200; ++n) {
    const std::uint64_t room = random() % 300;
    std::vector<KnapsackItem> items;
    for (std::uint64_t count = random() % 40; count > 0; --count) {
      const std::uint64_t bytes = random() % 100;
      // Benefits near their sizes are the hard ones.
      const double benefit = n % 2 == 0 ? static_cast<double>(random() % 100)
                                        : static_cast<double>(bytes) + 5 + static_cast<double>(random() % 3);
      items.push_back({benefit, bytes});
    }
    const auto [benefit, bytes] = sums(items, knapsack(items, room));
    CHECK(bytes <= room);
    CHECK(benefit >= 0.99 * greatest_benefit(items, room));
  }
}

TEST_CASE("knapsack: exact for equal sizes, whole for no room and worthless items") {
  const std::vector<KnapsackItem> equal{{1, 64}, {5, 64}, {3, 64}, {5, 64}, {-2, 64}, {0, 64}};
  CHECK(knapsack(equal, 200) == std::vector<bool>{false, true, true, true, false, false});
  CHECK(knapsack(equal, 128) == std::vector<bool>{false, true, false, true, false, false});
  CHECK(knapsack(equal, 127) == std::vector<bool>{false, true, false, false, false, false});  // the earlier of both
  CHECK(knapsack(equal, 63) == std::vector<bool>(6, false));
  CHECK(knapsack(std::vector<KnapsackItem>{{1, 0}, {9, 1}}, 0) == std::vector<bool>{true, false});
  CHECK(knapsack({}, 100).empty());
}

TEST_CASE("knapsack: a thousand like items do not defeat the search") {
  // Each a little heavier than half of what is left: the bound stays far, and branches are many.
  std::vector<KnapsackItem> items;
  for (int n = 0; n < 1000; ++n) items.push_back({100.0 + n % 7, 1000 + static_cast<std::uint64_t>(n % 13)});
  const auto [benefit, bytes] = sums(items, knapsack(items, 20500));
  CHECK(bytes <= 20500);
  CHECK(benefit >= 0.99 * greatest_benefit(items, 20500));
}

TEST_CASE("knapsack: a few of many large items, too many for branch and bound") {
  std::mt19937_64 random(12);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  std::vector<KnapsackItem> items;
  for (int n = 0; n < 600; ++n) {
    const std::uint64_t bytes = 1300 + random() % 700;
    items.push_back({static_cast<double>(bytes) + static_cast<double>(random() % 40), bytes});
  }
  const std::uint64_t room = 5199;  // three of them: the cut item leaves the bound far above
  const auto [benefit, bytes] = sums(items, knapsack(items, room));
  CHECK(bytes <= room);
  CHECK(benefit >= 0.99 * greatest_benefit(items, room));
}

TEST_CASE("paper selection: by benefit, what does not fit is skipped, benefits of 0 stay") {
  const Servers servers = two_classes(TiB, 100);
  const std::vector<RegionOptions> regions{
      {{option(10, 80, 0), option(4, 20, 60)}},  // 6
      {{option(10, 80, 0), option(1, 20, 60)}},  // 9: first
      {{option(10, 80, 0), option(5, 20, 40)}},  // 5: fits behind
      {{option(10, 80, 0), option(10, 20, 0)}},  // 0
  };
  const RegionSelection selection = paper_selection(regions, servers);
  CHECK(selection.option == std::vector<std::uint32_t>{0, 1, 1, 0});
  CHECK(selection.seconds == 10 + 1 + 5 + 10);
  CHECK(selection.server_bytes == std::vector<std::uint64_t>{200, 100});
}

TEST_CASE("selection: benefit per byte beats the paper's ranking where sizes differ") {
  const Servers servers = two_classes(TiB, 100);
  const std::vector<RegionOptions> regions{
      {{option(10, 80, 0), option(0, 0, 100)}},  // 10 s for all the room
      {{option(10, 80, 0), option(4, 0, 50)}},   // 6 s for half
      {{option(10, 80, 0), option(3, 0, 50)}},   // 7 s for half
  };
  CHECK(paper_selection(regions, servers).seconds == 20);
  const auto ours = select_regions(regions, servers, Contention::together);
  CHECK(ours->seconds == 17);
  CHECK(ours->option == std::vector<std::uint32_t>{0, 1, 1});
  CHECK(ours->bound_s <= 17);
}

TEST_CASE("selection: together, at least 0.99 of what a dynamic program saves") {
  std::mt19937_64 random(4);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 100; ++n) {
    const std::uint64_t room = 50 + random() % 300;
    const Servers servers = two_classes(TiB, room);
    std::vector<RegionOptions> regions;
    std::vector<KnapsackItem> items;
    double slow_s = 0;
    for (std::uint64_t count = 1 + random() % 40; count > 0; --count) {
      const KnapsackItem item{static_cast<double>(random() % 50), 1 + random() % 100};
      items.push_back(item);
      regions.push_back({{option(60, 9, 0), option(60 - item.benefit, 5, item.bytes)}});
      slow_s += 60;
    }
    const auto selection = select_regions(regions, servers, Contention::together);
    const double most = greatest_benefit(items, room);
    CHECK(slow_s - selection->seconds >= 0.99 * most - 1e-9);
    CHECK(selection->bound_s <= slow_s - most + 1e-6);
    CHECK(selection->server_bytes[1] <= room);
  }
}

TEST_CASE("selection: spread, the best of all selections of few regions, within capacity") {
  std::mt19937_64 random(5);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 32; ++n) {
    const int count = n < 30 ? 7 : 10;
    const std::uint64_t room = 100 + random() % 200;
    const Servers servers = two_classes(TiB, room);
    std::vector<RegionOptions> regions;
    for (int k = 0; k < count; ++k) {
      const double load = 1 + static_cast<double>(random() % 100);
      const std::uint64_t bytes = 20 + random() % 60;
      regions.push_back({{busy(load, 0, 0), busy(0, load / 4, bytes), busy(load / 3, load / 6, bytes * 2 / 3)}});
    }
    double best = std::numeric_limits<double>::infinity();
    const int codes = static_cast<int>(std::lround(std::pow(3, count)));
    for (int code = 0; code < codes; ++code) {
      double slow = 0, fast = 0;
      std::uint64_t bytes = 0;
      for (int k = 0, rest = code; k < count; ++k, rest /= 3) {
        const LayoutOption& of = regions[static_cast<std::size_t>(k)].options[static_cast<std::size_t>(rest % 3)];
        slow += of.load.classes[0].mean_storage_s;
        fast += of.load.classes[1].mean_storage_s;
        bytes += of.server_bytes[1];
      }
      if (bytes <= room) best = std::min(best, std::max(slow, fast));
    }
    const auto selection = select_regions(regions, servers, Contention::spread);
    CHECK(selection->server_bytes[1] <= room);
    CHECK(selection->bound_s <= best * (1 + 1e-9));
    CHECK(selection->seconds == doctest::Approx(best).epsilon(1e-9));
  }
}

TEST_CASE("selection: many regions come within 1 % of the bound") {
  const std::vector<Region> regions = zipf_regions(512 * KiB);
  const Servers servers = physical();
  const auto options = layout_options(regions, servers);
  const auto selection = select_regions(options, servers, Contention::spread);
  CHECK(selection->seconds <= 1.01 * selection->bound_s);
  CHECK(selection->server_bytes[1] <= *servers.classes[1].capacity_bytes);
  // 512 KB: disks serve 12 / (8 ms + 5.24 ms) = 906 a second, and the flash's links 4 * 117 MB/s = 893.
  double bytes = 0;
  for (const Region& region : regions) bytes += static_cast<double>(region.groups[0].count) * 524288;
  const double bytes_per_s = bytes / selection->seconds;
  CHECK(bytes_per_s <= 943.2e6);
  CHECK(bytes_per_s >= 0.8 * 943.2e6);
  // Not every hot region is on flash alone: that would leave the disks idle and the flash's links full.
  const auto printed = paper_selection(paper_options(regions, *paper_stripes(regions, servers), servers), servers);
  CHECK(std::accumulate(printed.option.begin(), printed.option.end(), 0U) > 0);
}

TEST_CASE("selection: no room on flash, and no room at all") {
  const std::vector<Region> regions = zipf_regions(64 * KiB);
  Servers servers = physical();
  servers.classes[1].capacity_bytes = 0;
  const auto options = layout_options(regions, servers);
  const auto selection = select_regions(options, servers, Contention::spread);
  CHECK(selection->server_bytes[1] == 0);
  const auto printed = paper_selection(paper_options(regions, *paper_stripes(regions, servers), servers), servers);
  CHECK(printed.server_bytes[1] == 0);
  servers.classes[0].capacity_bytes = GiB;
  CHECK(select_regions(options, servers, Contention::spread).error().kind == ErrorKind::infeasible);
}

TEST_CASE("selection: one class, no regions, the home class") {
  Servers servers = physical();
  CHECK(home_class(servers) == 0);
  servers.classes[0].capacity_bytes = MiB;  // less than the flash has
  CHECK(home_class(servers) == 1);
  servers.classes.pop_back();
  servers.classes[0].capacity_bytes.reset();
  const auto options = layout_options(zipf_regions(64 * KiB), servers);
  CHECK(options[0].options.size() <= 3);
  CHECK(select_regions(options, servers, Contention::together)->seconds > 0);
  CHECK(select_regions({}, servers, Contention::spread)->seconds == 0);
}
