// Accesses without a pattern: hot spots by Zipf's law, which may move, and every slot once in random order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "families.h"
#include "iosig/base/mix.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

/// A permutation of 0 .. n - 1, looked up without a table: four Feistel rounds over the next power of four, again while
/// the result is no number below n.
std::uint64_t permuted(std::uint64_t number, std::uint64_t n, std::uint64_t seed) {
  if (n < 2) return 0;
  const auto half = static_cast<unsigned>(std::bit_width(n - 1) + 1) / 2;
  const std::uint64_t mask = (1ULL << half) - 1;
  do {
    std::uint64_t left = number >> half, right = number & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mixed(mixed(seed) + (right << 2 | round)) & mask);
      left = right;
      right = next;
    }
    number = left << half | right;
  } while (number >= n);
  return number;
}

/// The shares of slots 1 .. n under Zipf's law, added up: the k-th popular has a weight of k^-skew.
std::vector<double> added_shares(std::uint64_t n, double skew) {
  std::vector<double> shares(n);
  double total = 0;
  for (std::uint64_t k = 0; k < n; ++k) shares[k] = total += std::pow(static_cast<double>(k + 1), -skew);
  for (double& share : shares) share /= total;
  return shares;
}

// Every rank has slots of its own, and the popular ones lie anywhere among them.
Result<Plan> plan_zipf(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count"), slots = told.values.at("slots");
  constexpr std::uint64_t max_slots = 1u << 24;
  if (slots > max_slots) return fail(ErrorKind::bad_input, "--slots {}: expected at most {}", slots, max_slots);
  if (product({count, size}) > max_bytes)
    return fail(ErrorKind::bad_input, "--count {} of --size {}: a rank would write more than 2^63 - 1 bytes", count,
                bytes_text(size));
  Plan plan{.file_bytes = product({size, slots, told.ranks}), .is_repeating = true};
  const auto shares = std::make_shared<const std::vector<double>>(
      added_shares(slots, static_cast<double>(told.values.at("skew-percent")) / 100));
  plan.nests = [=, seed = told.seed](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t index) -> std::optional<Nest> {
      if (index >= count) return std::nullopt;
      const double at = static_cast<double>(mixed(mixed(mixed(seed) + rank) + index) >> 11) * 0x1p-53;
      const auto drawn = static_cast<std::uint64_t>(std::ranges::upper_bound(*shares, at) - shares->begin());
      const std::uint64_t slot = permuted(std::min(drawn, slots - 1), slots, seed);
      return Nest{.offset_bytes = (rank * slots + slot) * size, .length_bytes = size};
    };
  };
  return plan;
}

/// The regions by popularity in each window: after a window, the share `drift` of the places change their regions.
std::vector<std::vector<std::uint64_t>> ranked_regions(std::uint64_t regions, std::uint64_t windows, double drift,
                                                       std::uint64_t seed) {
  std::vector<std::uint64_t> ranked(regions);
  for (std::uint64_t n = 0; n < regions; ++n) ranked[n] = permuted(n, regions, seed);
  std::vector<std::vector<std::uint64_t>> list{ranked};
  const auto changing = static_cast<std::uint64_t>(std::llround(drift * static_cast<double>(regions)));
  while (list.size() < windows) {
    const auto place = [&](std::uint64_t n) { return permuted(n % changing, regions, seed + list.size()); };
    for (std::uint64_t n = 0; n < changing; ++n) ranked[place(n)] = list.back()[place(n + 1)];
    list.push_back(ranked);
  }
  return list;
}

// All ranks access all regions; the blocks of a region belong to the ranks in turn.
Result<Plan> plan_ior_hot(const Parameters& told) {
  const auto value = [&](std::string_view name) { return told.values.find(name)->second; };
  const std::uint64_t size = value("size"), count = value("count"), regions = value("regions"), ranks = told.ranks;
  const std::uint64_t region = value("region"), windows = value("windows"), own = region / size / ranks;
  constexpr std::uint64_t max_places = 1U << 24, percent = 100;
  if (own == 0)
    return fail(ErrorKind::bad_input, "--region {}: expected at least a block of --size {} for each of {} ranks",
                bytes_text(region), bytes_text(size), ranks);
  if (product({regions, windows}) > max_places || value("drift-percent") > percent)
    return fail(ErrorKind::bad_input,
                "--regions {}, --windows {}, --drift-percent {}: expected at most {} regions times windows, and 100 %",
                regions, windows, value("drift-percent"), max_places);
  Plan plan{.file_bytes = product({regions, region}), .is_repeating = true};
  const auto shares = std::make_shared<const std::vector<double>>(
      added_shares(regions, static_cast<double>(value("skew-percent")) / percent));
  const auto ranked = std::make_shared<const std::vector<std::vector<std::uint64_t>>>(
      ranked_regions(regions, windows, static_cast<double>(value("drift-percent")) / percent, told.seed));
  plan.nests = [=, seed = told.seed](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t index) -> std::optional<Nest> {
      if (index >= count) return std::nullopt;
      const std::uint64_t bits = mixed(mixed(mixed(seed) + rank) + index);
      const double at = static_cast<double>(bits >> 11) * 0x1p-53;
      const auto drawn = static_cast<std::uint64_t>(std::ranges::upper_bound(*shares, at) - shares->begin());
      const std::uint64_t window = product({index, windows}) / count, block = mixed(bits) % own * ranks + rank;
      const std::uint64_t hot = (*ranked)[window][std::min(drawn, regions - 1)];
      return Nest{.offset_bytes = hot * region + block * size, .length_bytes = size};
    };
  };
  return plan;
}

Result<Plan> plan_random(const Parameters& told) {
  const std::uint64_t size = told.values.at("size"), count = told.values.at("count"), ranks = told.ranks;
  Plan plan{.file_bytes = product({size, count, ranks})};
  plan.nests = [=, seed = told.seed](std::uint64_t rank) -> Nests {
    return [=](std::uint64_t index) -> std::optional<Nest> {
      if (index >= count) return std::nullopt;
      return Nest{.offset_bytes = permuted(rank * count + index, count * ranks, seed) * size, .length_bytes = size};
    };
  };
  return plan;
}

}  // namespace

std::vector<Workload> scattered_workloads() {
  const Parameter size{"size", 4 * KiB, true, 1, "bytes of a write; ours, as FS-TEST's"};
  return {
      {"zipf",
       "hot spots: the same few slots again and again; gaps where none was drawn",
       "Zipf's law with YCSB's constant (Cooper et al., SoCC 2010)",
       {size,
        {"count", 16 * KiB, false, 1, "writes of a rank; ours"},
        {"slots", KiB, false, 1, "places to write to, for each rank its own; ours, at most 2^24"},
        {"skew-percent", 99, false, 0, "exponent in hundredths; YCSB: 0.99; 0: all alike"}},
       plan_zipf},
      {"ior-hot",
       "random blocks of regions that are hot for a while: shared by all ranks, gaps",
       "IOR changed to Zipf's law: H2DP section 5.2.1; the windows and their drift are ours",
       {{"size", 512 * KiB, true, 1, "bytes of a write; H2DP: 64 KB to 4 MB, usually 512 KB"},
        {"count", 4 * KiB, false, 1, "writes of a rank; ours"},
        {"regions", 512, false, 1, "of the file; ours"},
        {"region", 64 * MiB, true, 1, "bytes of a region; H2DP: 64 MB"},
        {"windows", 4, false, 1, "between which regions change in popularity; ours"},
        {"drift-percent", 30, false, 0, "of the regions change after a window; ours"},
        {"skew-percent", 80, false, 0, "exponent in hundredths; H2DP: 0.8"}},
       plan_ior_hot},
      {"random",
       "every slot of the file once, in random order over all ranks",
       "ours",
       {size, {"count", 16 * KiB, false, 1, "writes of a rank; ours"}},
       plan_random},
  };
}

}  // namespace iosig::workloads
