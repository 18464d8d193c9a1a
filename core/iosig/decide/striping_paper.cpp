// Algorithm 1 of the H2DP paper, its pairs divided among threads.
#include <algorithm>
#include <limits>

#include "iosig/base/parallel.h"
#include "iosig/decide/striping.h"

namespace iosig {
namespace {

/// Table 2 for many requests of one pair, what is the same for all of them computed once.
class PairCost {
 public:
  PairCost(const Servers& servers, std::uint64_t h, std::uint64_t s, bool charges_idle)
      : client_s_per_byte_(servers.processes_per_node * servers.network.s_per_byte) {
    Servers charged = servers;
    if (h == 0 && !charges_idle) charged.classes[0].read.startup_s = charged.classes[0].write.startup_s = 0;
    read_ = table2_cost(charged, h, s, 0, false);
    write_ = table2_cost(charged, h, s, 0, true);
  }

  [[nodiscard]] double seconds(const RequestGroup& group) const {
    const RequestCost& cost = group.is_write ? write_ : read_;
    const double transfer_s = std::max(client_s_per_byte_ * static_cast<double>(group.length), cost.transfer_s);
    return static_cast<double>(group.count) * (cost.connect_s + transfer_s + cost.storage_s);
  }

 private:
  RequestCost read_, write_;
  double client_s_per_byte_;
};

/// The pairs of one region with one h.
struct PairRow {
  std::size_t region = 0;
  std::uint64_t h = 0, r = 0;
};

/// Pairs of all regions; more would take hours. A region of 64 MB, the usual one, has about 4 million at most.
constexpr double max_pairs = 1e11;

/// Returns how many pairs the loops of one region visit.
double pairs_of(std::uint64_t r, std::uint64_t m, std::uint64_t n, std::uint64_t step) {
  const std::uint64_t most = r / n / step;
  const std::uint64_t longest = std::min(r / (m + n), r / n) / step;
  const double rows = static_cast<double>(longest) + 1;
  return std::max(0.0, rows * (static_cast<double>(most) - (rows - 1) / 2));
}

std::uint64_t largest_request(const Region& region) {
  std::uint64_t r = 1;
  for (const RequestGroup& group : region.groups) r = std::max(r, group.length);
  return r;
}

StripeChoice costed_pair(const Region& region, const Servers& servers, std::uint64_t h, std::uint64_t s,
                         bool charges_idle) {
  const PairCost cost(servers, h, s, charges_idle);
  StripeChoice choice{.stripes = {h, s}, .seconds = 0, .is_fallback = false, .tried = 1};
  for (const RequestGroup& group : region.groups) choice.seconds += cost.seconds(group);
  return choice;
}

StripeChoice best_of_row(const PairRow& row, const Region& region, const Servers& servers,
                         const PaperStripeOptions& options) {
  const std::uint64_t m = servers.classes[0].count, n = servers.classes[1].count, step = options.step_bytes;
  StripeChoice best;
  std::uint64_t tried = 0;
  for (std::uint64_t s = row.h + step; s <= row.r / n; s += step) {
    if (!options.is_literal && m * row.h + n * s < row.r) continue;
    StripeChoice pair = costed_pair(region, servers, row.h, s, options.charges_idle);
    ++tried;
    if (best.stripes.empty() || pair.seconds < best.seconds) best = std::move(pair);
  }
  best.tried = tried;
  return best;
}

}  // namespace

Result<std::vector<StripeChoice>> paper_stripes(std::span<const Region> regions, const Servers& servers,
                                                const PaperStripeOptions& options) {
  if (servers.classes.size() != 2 || servers.classes[0].count == 0 || servers.classes[1].count == 0)
    return fail(ErrorKind::usage,
                "the paper's stripe search knows HServers and SServers: expected two classes of "
                "servers with at least one each; use ours for other systems");
  if (options.step_bytes == 0) return fail(ErrorKind::usage, "a step of 0 bytes: expected at least 1");
  const std::uint64_t m = servers.classes[0].count, n = servers.classes[1].count, step = options.step_bytes;
  double pairs = 0;
  for (const Region& region : regions) pairs += pairs_of(largest_request(region), m, n, step);
  if (pairs > max_pairs)
    return fail(
        ErrorKind::usage,
        "the paper's stripe search would try {:.0e} pairs of sizes, because requests are large; expected at most "
        "{:.0e}: use smaller regions, a larger step, or ours",
        pairs, max_pairs);
  std::vector<PairRow> rows;
  for (std::size_t region = 0; region < regions.size(); ++region) {
    const std::uint64_t r = largest_request(regions[region]);
    // Rows whose h leaves no s are as empty as in the printed loop.
    for (std::uint64_t h = 0; h <= r / (m + n) && h + step <= r / n; h += step) rows.push_back({region, h, r});
  }
  std::vector<StripeChoice> of_row(rows.size());
  for_each_in_parallel(rows.size(), options.threads, [&](std::size_t row) {
    of_row[row] = best_of_row(rows[row], regions[rows[row].region], servers, options);
  });
  std::vector<StripeChoice> best(regions.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    StripeChoice& choice = best[rows[row].region];
    const std::uint64_t tried = choice.tried + of_row[row].tried;
    if (choice.stripes.empty() || (!of_row[row].stripes.empty() && of_row[row].seconds < choice.seconds))
      choice = std::move(of_row[row]);
    choice.tried = tried;
  }
  for (std::size_t region = 0; region < regions.size(); ++region) {
    if (!best[region].stripes.empty()) continue;
    const std::uint64_t share = (largest_request(regions[region]) + n - 1) / n;
    const std::uint64_t tried = best[region].tried;
    best[region] = costed_pair(regions[region], servers, 0, (share + step - 1) / step * step, options.charges_idle);
    best[region].is_fallback = true;
    best[region].tried = tried;
  }
  return best;
}

}  // namespace iosig
