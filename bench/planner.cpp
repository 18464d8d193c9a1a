// The time of planning: a million requests over 1600 regions, by the paper's algorithm and by ours, also in four
// windows with other hot regions in each, and a billion accesses by their pattern.
//
//   bench_planner [REQUEST_KIB...]    sizes of the requests in KiB, mixed evenly; default 512
//
// Prints processor time and time from start to end. The paper's algorithm costs each request for each pair.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <random>
#include <string>

#include "iosig/base/units.h"
#include "iosig/decide/migration.h"
#include "iosig/decide/regions.h"
#include "iosig/decide/selection.h"
#include "iosig/decide/striping.h"
#include "iosig/decide/trial.h"

namespace {

using namespace iosig;

constexpr std::uint64_t requests_count = 1'000'000, regions_count = 1600;

/// 12 HServers and 4 SServers that hold a sixth of the file; 32 processes.
Servers servers_of_bench() {
  constexpr std::uint64_t fast_room = regions_count * default_region_bytes / 6 / 4;
  return {.classes = {{"hdd", 12, {8e-3, 1e-8}, {8e-3, 1e-8}, std::nullopt},
                      {"ssd", 4, {1e-4, 4e-9}, {1.5e-4, 1 / 180e6}, fast_room}},
          .network = {1e-4, 1 / 117e6},
          .processes = 32,
          .processes_per_node = 1};
}

/// Zipf(0.8) over the regions, aligned to their sizes.
std::vector<Request> requests_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<double> weights;
  for (std::uint64_t n = 1; n <= regions_count; ++n) weights.push_back(std::pow(static_cast<double>(n), -0.8));
  std::discrete_distribution<std::uint64_t> hot(weights.begin(), weights.end());
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  std::vector<Request> requests;
  for (std::uint64_t n = 0; n < requests_count; ++n) {
    const std::uint64_t length = lengths[random() % lengths.size()];
    const std::uint64_t region = hot(random);
    requests.push_back({.offset = region * default_region_bytes + random() % (default_region_bytes / length) * length,
                        .length = length,
                        .is_write = random() % 4 == 0});
  }
  return requests;
}

/// Runs `work`, prints its times, and returns its processor time in seconds.
template <class Work>
double timed(const std::string& name, Work&& work) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  work();
  const double processor_s = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  fmt::print("{:<48} {:>9.3f} s of processor time, {:>9.3f} s\n", name, processor_s, elapsed.count());
  std::fflush(stdout);
  return processor_s;
}

std::vector<Region> collected(const std::vector<Request>& requests) {
  RegionCollector collector(fixed_regions(regions_count * default_region_bytes).value());
  (void)collector.add(requests);
  return collector.regions();
}

/// Each request as a group of its own.
std::vector<Region> ungrouped(const std::vector<Request>& requests) {
  std::vector<Region> regions = RegionCollector(fixed_regions(regions_count * default_region_bytes).value()).regions();
  for (const Request& request : requests)
    regions[request.offset / default_region_bytes].groups.push_back(
        {.offset = request.offset % default_region_bytes, .length = request.length, .is_write = request.is_write});
  return regions;
}

constexpr std::uint64_t printed_share = 20;

/// Lines 4 to 20 of Algorithm 1 for each 20th request: a call of the model for each pair, on one processor.
void printed_algorithm(const std::vector<Region>& regions, const Servers& servers) {
  double total_s = 0;
  const std::uint64_t m = servers.classes[0].count, n = servers.classes[1].count, step = 4096;
  for (const Region& region : regions) {
    std::uint64_t r = 0;
    for (const RequestGroup& request : region.groups) r = std::max(r, request.length);
    double best_s = std::numeric_limits<double>::infinity();
    for (std::uint64_t h = 0; h <= r / (m + n); h += step)
      for (std::uint64_t s = h + step; s <= r / n; s += step) {
        double region_s = 0;
        for (std::size_t j = 0; j < region.groups.size(); j += printed_share)
          region_s += table2_cost(servers, h, s, region.groups[j].length, region.groups[j].is_write).seconds();
        best_s = std::min(best_s, region_s);
      }
    if (!region.groups.empty()) total_s += best_s;
  }
  if (total_s < 0) std::abort();  // keeps the sums
}

/// i < 1000 { j < 1000 { k < 1000 { (64 MiB i + 64 j, 64) } } }: a billion.
Pattern billion() {
  Pattern pattern;
  pattern.columns = 2;
  pattern.kinds = {Column::logical, Column::length};
  pattern.nodes = {{true, 4, 0}, {true, 4, 1}, {true, 4, 3}, {false, 4, 6}};
  pattern.numbers = {1000, 1000, 0, 1000, 0, 0, 0, std::int64_t{64} << 20U, 65536, 64, 64, 0, 0, 0};
  pattern.terms = {{true, 0, 1'000'000'000, 0}};
  return pattern;
}

/// i < 10^9 { (4096 i, 4096) }: 61,036 regions.
Pattern consecutive_billion() {
  Pattern pattern;
  pattern.columns = 2;
  pattern.kinds = {Column::logical, Column::length};
  pattern.nodes = {{true, 2, 0}, {false, 2, 1}};
  pattern.numbers = {1'000'000'000, 0, 4096, 4096, 0};
  pattern.terms = {{true, 0, 1'000'000'000, 0}};
  return pattern;
}

/// Four windows of the requests; the hot regions of each lie 200 regions behind those before.
void plan_four_windows(std::vector<Request> requests, const Servers& servers) {
  constexpr std::uint64_t windows = 4, step = 200 * default_region_bytes;
  std::vector<std::vector<Region>> regions;
  for (std::uint64_t n = 0; n < windows; ++n) {
    const auto begin = requests.begin() + static_cast<std::ptrdiff_t>(n * requests.size() / windows);
    std::vector<Request> some(begin, begin + static_cast<std::ptrdiff_t>(requests.size() / windows));
    for (Request& each : some) each.offset = (each.offset + n * step) % (regions_count * default_region_bytes);
    regions.push_back(collected(some));
  }
  const std::vector<std::uint64_t> lengths(regions_count, default_region_bytes);
  (void)plan_migration(same_options(regions, servers), lengths, servers, Contention::spread).value();
}

/// The even layouts tried beside one of the cost model, as `iosig plan` does where the order is known.
void try_layouts(const std::vector<Request>& requests, std::vector<Stripes> chosen, const Servers& servers) {
  std::vector<RegionRequest> sent;
  for (std::size_t n = 0; n < requests.size(); ++n) {
    const Request& each = requests[n];
    sent.push_back({static_cast<std::uint32_t>(n % servers.processes),
                    static_cast<std::uint32_t>(each.offset / default_region_bytes), each.offset % default_region_bytes,
                    each.length, each.is_write});
  }
  const std::vector<std::uint64_t> lengths(regions_count, default_region_bytes);
  const std::array windows{requests_at_moments(sent)};
  std::vector<WholeLayout> layouts{{{std::move(chosen)}}};
  for (const Stripes& stripes : even_layouts(lengths, servers, usual_length(windows)))
    layouts.push_back({{std::vector(lengths.size(), stripes)}});
  const Trial trial = best_by_trial(layouts, lengths, servers, windows).value();
  fmt::print("  {} layouts; {:.3g} s simulated by the cost model's, {:.3g} s by layout {}\n", layouts.size(),
             trial.first_s, trial.seconds, trial.best);
}

void plan_pattern(const Pattern& pattern, std::uint64_t count, Servers servers) {
  servers.classes[1].capacity_bytes = count * default_region_bytes / 6 / servers.classes[1].count;
  RegionCollector collector(fixed_regions(count * default_region_bytes).value());
  (void)collector.add(pattern, false);
  const std::vector<std::vector<Region>> regions{collector.regions()};
  const std::vector<std::uint64_t> lengths(count, default_region_bytes);
  (void)plan_migration(same_options(regions, servers), lengths, servers, Contention::spread).value();
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::uint64_t> lengths;
  for (int n = 1; n < count; ++n) lengths.push_back(std::strtoull(words[n], nullptr, 10) * KiB);
  if (lengths.empty()) lengths.push_back(512 * KiB);
  const Servers servers = servers_of_bench();
  const std::vector<Request> requests = requests_of(lengths);
  std::vector<Region> regions;
  std::vector<RegionOptions> options;
  double ours_s = timed("ours: regions and groups", [&] { regions = collected(requests); });
  ours_s += timed("ours: stripes", [&] { options = layout_options(regions, servers); });
  std::vector<Stripes> chosen;
  ours_s += timed("ours: selection, spread", [&] {
    const RegionSelection selection = select_regions(options, servers, Contention::spread).value();
    for (std::size_t n = 0; n < options.size(); ++n) chosen.push_back(options[n].options[selection.option[n]].stripes);
  });
  ours_s += timed("ours: layouts tried", [&] { try_layouts(requests, chosen, servers); });
  (void)timed("ours: selection, together",
              [&] { (void)select_regions(options, servers, Contention::together).value(); });
  const std::vector<Region> each = ungrouped(requests);
  std::uint64_t pairs = 0;
  const double covering_s = timed("Algorithm 1, pairs that cover the request", [&] {
    const std::vector<StripeChoice> choices = paper_stripes(each, servers).value();
    for (const StripeChoice& choice : choices) pairs += choice.tried;
  });
  fmt::print("  {} pairs; {:.1f} times ours\n", pairs, covering_s / ours_s);
  const double printed_s = printed_share * timed(fmt::format("Algorithm 1 as printed, 1/{} of it", printed_share),
                                                 [&] { printed_algorithm(each, servers); });
  fmt::print("  all of it, estimated: {:.1f} s; {:.1f} times ours\n", printed_s, printed_s / ours_s);
  (void)timed("ours: all, in four windows", [&] { plan_four_windows(requests, servers); });
  (void)timed("ours: 10^9 accesses by a pattern, 1000 regions", [&] { plan_pattern(billion(), 1000, servers); });
  (void)timed("ours: 10^9 accesses by a pattern, 61036 regions",
              [&] { plan_pattern(consecutive_billion(), 61'036, servers); });
  return 0;
}
