// The 0/1 knapsack for selections: greedy, then branch and bound, then a dynamic program.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include "iosig/decide/selection.h"

namespace iosig {
namespace {

constexpr double good_gap = 0.001;            ///< below the bound, a solution is taken at once
constexpr std::size_t max_work = 10'000'000;  ///< of branch and bound, in items looked at
constexpr double program_gap = 0.005;         ///< of the dynamic program

/// Items with a benefit that fit alone, by benefit per byte.
struct Ranked {
  std::vector<std::size_t> item;
  std::vector<double> benefit;
  std::vector<std::uint64_t> bytes;

  Ranked(std::span<const KnapsackItem> items, std::uint64_t room) {
    for (std::size_t n = 0; n < items.size(); ++n)
      if (items[n].benefit > 0 && items[n].bytes <= room) item.push_back(n);
    const auto per_byte = [&](std::size_t n) {
      return items[n].bytes == 0 ? std::numeric_limits<double>::infinity()
                                 : items[n].benefit / static_cast<double>(items[n].bytes);
    };
    std::ranges::stable_sort(item, std::greater{}, per_byte);
    for (const std::size_t n : item) {
      benefit.push_back(items[n].benefit);
      bytes.push_back(items[n].bytes);
    }
  }
  [[nodiscard]] std::size_t size() const { return item.size(); }

  /// Returns an upper bound of what items from `first` on add in `room` bytes: the last one may be cut.
  /// Counts these items in `work`.
  [[nodiscard]] double bound(std::size_t first, std::uint64_t room, std::size_t* work = nullptr) const {
    double sum = 0;
    for (std::size_t n = first; n < size(); ++n) {
      if (work != nullptr) ++*work;
      if (bytes[n] > room) return sum + benefit[n] * static_cast<double>(room) / static_cast<double>(bytes[n]);
      room -= bytes[n];
      sum += benefit[n];
    }
    return sum;
  }
};

using Taken = std::vector<bool>;

double benefit_of(const Ranked& items, const Taken& taken) {
  double sum = 0;
  for (std::size_t n = 0; n < items.size(); ++n)
    if (taken[n]) sum += items.benefit[n];
  return sum;
}

/// Takes what fits in the order of the ranks, or the one item that is worth more than all these.
Taken greedy(const Ranked& items, std::uint64_t room) {
  Taken taken(items.size());
  double sum = 0;
  for (std::size_t n = 0; n < items.size(); ++n) {
    if (items.bytes[n] > room) continue;
    room -= items.bytes[n];
    taken[n] = true;
    sum += items.benefit[n];
  }
  const auto best = std::ranges::max_element(items.benefit);
  if (best != items.benefit.end() && *best > sum) {
    taken.assign(items.size(), false);
    taken[static_cast<std::size_t>(best - items.benefit.begin())] = true;
  }
  return taken;
}

/// Depth first, items in the order of the ranks, first with and then without each. Ends where the best solution is
/// within good_gap of all that is left.
class BranchAndBound {
 public:
  BranchAndBound(const Ranked& items, Taken best) : items_(items), best_(std::move(best)), at_(items.size()) {
    best_benefit_ = benefit_of(items, best_);
  }
  /// Returns whether the search ended before its limit.
  [[nodiscard]] bool run(std::uint64_t room) {
    double sum = 0;
    for (std::size_t n = 0;;) {
      if (work_ > max_work) return false;
      if (n < items_.size() && sum + items_.bound(n, room, &work_) > best_benefit_ * (1 + good_gap)) {
        if (items_.bytes[n] <= room) {
          at_[n] = true;
          room -= items_.bytes[n];
          sum += items_.benefit[n];
        }
        ++n;
        continue;
      }
      if (sum > best_benefit_) {
        best_ = at_;
        best_benefit_ = sum;
      }
      while (n > 0 && !at_[n - 1]) --n;
      if (n == 0) return true;
      at_[n - 1] = false;  // and on without it
      room += items_.bytes[n - 1];
      sum -= items_.benefit[n - 1];
    }
  }
  [[nodiscard]] const Taken& best() const { return best_; }

 private:
  const Ranked& items_;
  Taken best_, at_;
  double best_benefit_ = 0;
  std::size_t work_ = 0;
};

/// The least bytes for each rounded benefit of the items that are large; small ones are added greedily. `known` is at
/// least half of the greatest benefit, `bound` at least all of it.
Taken by_rounded_benefits(const Ranked& items, std::uint64_t room, double known, double bound) {
  const double step = known * program_gap / 4 * program_gap;  // an item of program_gap / 4 loses its program_gap
  std::vector<std::size_t> large;
  for (std::size_t n = 0; n < items.size(); ++n)
    if (items.benefit[n] >= known * program_gap / 4) large.push_back(n);
  const auto levels = static_cast<std::size_t>(bound / step) + 2;
  constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> least(levels, never);
  least[0] = 0;
  std::vector<Taken> uses(large.size(), Taken(levels));
  for (std::size_t k = 0; k < large.size(); ++k) {
    const auto worth = static_cast<std::size_t>(items.benefit[large[k]] / step);
    for (std::size_t level = levels - 1; level >= worth && level > 0; --level) {
      if (least[level - worth] == never) continue;
      const std::uint64_t bytes = least[level - worth] + items.bytes[large[k]];
      if (bytes > room || bytes >= least[level]) continue;
      least[level] = bytes;
      uses[k][level] = true;
    }
  }
  Taken best(items.size());
  double best_benefit = -1;
  std::uint64_t least_above = never;  // of all higher levels
  for (std::size_t level = levels; level-- > 0;) {
    if (least[level] >= least_above) continue;
    least_above = least[level];
    Taken taken(items.size());
    std::uint64_t left = room - least[level];
    for (std::size_t k = large.size(), at = level; k-- > 0;)
      if (uses[k][at]) {
        taken[large[k]] = true;
        at -= static_cast<std::size_t>(items.benefit[large[k]] / step);
      }
    for (std::size_t n = 0; n < items.size(); ++n)
      if (!taken[n] && items.bytes[n] <= left) {
        taken[n] = true;
        left -= items.bytes[n];
      }
    const double benefit = benefit_of(items, taken);
    if (benefit > best_benefit) {
      best_benefit = benefit;
      best = std::move(taken);
    }
  }
  return best;
}

}  // namespace

std::vector<bool> knapsack(std::span<const KnapsackItem> items, std::uint64_t room) {
  const Ranked ranked(items, room);
  Taken taken = greedy(ranked, room);
  if (ranked.bound(0, room) > benefit_of(ranked, taken) * (1 + good_gap)) {
    BranchAndBound search(ranked, taken);
    const bool is_done = search.run(room);
    taken = search.best();
    if (!is_done && ranked.bound(0, room) > benefit_of(ranked, taken) * (1 + program_gap)) {
      Taken other = by_rounded_benefits(ranked, room, benefit_of(ranked, taken), ranked.bound(0, room));
      if (benefit_of(ranked, other) > benefit_of(ranked, taken)) taken = std::move(other);
    }
  }
  std::vector<bool> result(items.size());
  for (std::size_t n = 0; n < ranked.size(); ++n) result[ranked.item[n]] = taken[n];
  return result;
}

}  // namespace iosig
