#include "iosig/cost/markov.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace iosig {
namespace {

using Kind = Structure::Kind;

/// The state of a part as seen by the code that it belongs to.
struct ChainState {
  std::uint32_t losses = 0;  ///< that the code must compensate for: 1 for a lost part, more for a local group
  double unreadable = 0;     ///< expected unreadable bits in it that it cannot correct by itself
};

struct Step {
  std::size_t from = 0, to = 0;
  double rate = 0;
  double unreadable = 0;  ///< of a rebuild: expected unreadable bits in what it reads that could not be corrected below
  bool reads_around = false;  ///< a local group's rebuild that needs parts outside the group
};

/// A chain whose state 0 is the new structure. `lost` is absorbing: the enclosing code rebuilds the structure as a
/// whole.
struct Chain {
  std::vector<ChainState> states;
  std::vector<Step> steps;
  std::size_t lost = 0;
};

/// The limit of one computation, in additions: some tenths of a second.
class Budget {
 public:
  /// Returns false when the budget is used up.
  bool take(double sums) {
    left_ -= sums;
    return left_ >= 0;
  }

 private:
  double left_ = 4e8;
};

tl::unexpected<Error> too_many_states() {
  return fail(ErrorKind::infeasible,
              "the Markov chain has more than {} states, or too many steps: too many parts differ", max_chain_states);
}

Result<Chain> chain_of(const Structure& structure, std::uint32_t spare, Budget& budget);

/// Parts that are equal and therefore counted.
struct PartClass {
  const Structure* part = nullptr;
  std::uint32_t count = 0;
  Chain chain;
  bool is_local_group = false;  ///< rebuilds its own parts
  std::size_t first = 0;        ///< index of its first count in a Counts
};

/// The number of parts in each state of their class's chain, class by class.
using Counts = std::vector<std::uint32_t>;

/// Builds the chain of a code from the chains of its parts.
class Composer {
 public:
  /// `spare`: losses beyond a local group's own parity for which the code around it compensates; otherwise 0.
  Composer(const Structure& structure, std::uint32_t spare, Budget& budget)
      : structure_(structure), spare_(spare), budget_(budget) {}

  Result<Chain> compose() {
    if (auto classified = classify(); !classified) return pass_on(std::move(classified.error()));
    Counts whole(width_, 0);
    for (const PartClass& parts : classes_) whole[parts.first] = parts.count;
    // ChainState 1 is `lost`; it has no counts.
    chain_.lost = 1;
    counts_ = {whole, {}};
    numbers_.emplace(whole, 0);
    chain_.states = {state_of(whole), ChainState{spare_ + 1, 0}};
    for (std::size_t from = 0; from < counts_.size(); ++from) {
      if (from == chain_.lost) continue;
      const std::size_t before = chain_.steps.size();
      add_steps(from);
      const double sums = static_cast<double>(chain_.steps.size() - before) * static_cast<double>(width_);
      if (chain_.states.size() > max_chain_states || !budget_.take(sums)) return too_many_states();
    }
    return std::move(chain_);
  }

 private:
  Result<void> classify() {
    for (const Structure& part : structure_.parts) {
      const auto known = std::ranges::find_if(classes_, [&](const PartClass& other) { return *other.part == part; });
      if (known != classes_.end()) {
        ++known->count;
        continue;
      }
      const bool is_group = structure_.kind == Kind::local_codes && part.kind == Kind::code;
      auto chain = chain_of(part, is_group ? structure_.parity : 0, budget_);
      if (!chain) return pass_on(std::move(chain.error()));
      const std::size_t states = chain->states.size();
      classes_.push_back({&part, 1, *std::move(chain), is_group, width_});
      width_ += states;
      if (width_ > max_chain_states) return too_many_states();
    }
    return {};
  }

  template <class Visit>
  void for_each_state(const Counts& counts, Visit visit) const {
    for (const PartClass& parts : classes_)
      for (std::size_t state = 0; state < parts.chain.states.size(); ++state)
        if (const std::uint32_t count = counts[parts.first + state]; count > 0) visit(parts, state, count);
  }

  [[nodiscard]] std::uint64_t losses_of(const Counts& counts) const {
    std::uint64_t losses = 0;
    for_each_state(counts, [&](const PartClass& parts, std::size_t state, std::uint32_t count) {
      losses += std::uint64_t{count} * parts.chain.states[state].losses;
    });
    return losses;
  }

  [[nodiscard]] double unreadable_of(const Counts& counts) const {
    double unreadable = 0;
    for_each_state(counts, [&](const PartClass& parts, std::size_t state, std::uint32_t count) {
      unreadable += count * parts.chain.states[state].unreadable;
    });
    return unreadable;
  }

  [[nodiscard]] ChainState state_of(const Counts& counts) const {
    const std::uint64_t losses = losses_of(counts), parity = structure_.parity;
    return {static_cast<std::uint32_t>(losses > parity ? losses - parity : 0),
            losses >= parity ? unreadable_of(counts) : 0};
  }

  /// Returns the number of the state with `counts`, adding it if it is new.
  std::size_t number_of(const Counts& counts) {
    if (losses_of(counts) > std::uint64_t{structure_.parity} + spare_) return chain_.lost;
    const auto [known, is_new] = numbers_.emplace(counts, counts_.size());
    if (is_new) {
      counts_.push_back(counts);
      chain_.states.push_back(state_of(counts));
    }
    return known->second;
  }

  void add_steps(std::size_t from) {
    const Counts before = counts_[from];
    const std::uint64_t losses = losses_of(before);
    const bool has_no_spare = losses >= structure_.parity;
    const double unreadable = has_no_spare ? unreadable_of(before) : 0;
    std::uint64_t lost_parts = 0;
    for_each_state(before, [&](const PartClass& parts, std::size_t state, std::uint32_t count) {
      if (state == parts.chain.lost && !parts.is_local_group) lost_parts += count;
    });
    const auto add = [&](const PartClass& parts, std::size_t part_from, std::size_t part_to, Step step) {
      Counts after = before;
      --after[parts.first + part_from];
      ++after[parts.first + part_to];
      step.from = from;
      step.to = number_of(after);
      chain_.steps.push_back(step);
    };
    for_each_state(before, [&](const PartClass& parts, std::size_t state, std::uint32_t count) {
      for (const Step& step : parts.chain.steps)
        if (step.from == state)
          add(parts, state, step.to,
              {.rate = count * step.rate,
               .unreadable = step.reads_around ? unreadable
                             : has_no_spare    ? step.unreadable
                                               : 0});
      if (state != parts.chain.lost || parts.is_local_group) return;
      const double share = static_cast<double>(count) / static_cast<double>(lost_parts);
      add(parts, state, 0,
          {.rate = share * structure_.repairs_per_s,
           .unreadable = unreadable,
           .reads_around = losses > structure_.parity});
    });
  }

  const Structure& structure_;
  std::uint32_t spare_;
  Budget& budget_;
  std::vector<PartClass> classes_;
  std::size_t width_ = 0;
  Chain chain_;
  std::vector<Counts> counts_;  ///< by state
  std::map<Counts, std::size_t> numbers_;
};

Result<Chain> chain_of(const Structure& structure, std::uint32_t spare, Budget& budget) {
  if (structure.kind != Kind::device) return Composer(structure, spare, budget).compose();
  return Chain{.states = {{0, structure.unreadable}, {1, 0}},
               .steps = {{.from = 0, .to = 1, .rate = structure.failures_per_s}},
               .lost = 1};
}

/// Returns the mean time from state 0 to `lost`. Eliminates states from last to first. Sums the remaining outgoing
/// rates of a state instead of subtracting, so no digits are lost however rare the loss is (Grassmann, Taksar and
/// Heyman 1985).
double absorption_s(const Chain& chain) {
  const std::size_t count = chain.states.size();
  std::vector<double> rates(count * count, 0);
  const auto rate = [&](std::size_t from, std::size_t to) -> double& { return rates[from * count + to]; };
  for (const Step& step : chain.steps) {
    rate(step.from, chain.lost) += step.rate * -std::expm1(-step.unreadable);
    rate(step.from, step.to) += step.rate * std::exp(-step.unreadable);
  }
  std::vector<double> held_s(count, 1);  // multiplied by the total outgoing rate
  std::vector<std::size_t> into;
  for (std::size_t last = count - 1; last > 0; --last) {
    if (last == chain.lost) continue;
    into.clear();  // remaining states, including `lost`, to which a step leads
    double leaving = 0;
    for (std::size_t to = 0; to < count; ++to)
      if ((to < last || to == chain.lost) && rate(last, to) > 0) {
        into.push_back(to);
        leaving += rate(last, to);
      }
    for (std::size_t from = 0; from < last; ++from) {
      if (from == chain.lost || rate(from, last) == 0) continue;
      const double times = rate(from, last) / leaving;
      held_s[from] += times * held_s[last];
      for (const std::size_t to : into)
        if (to != from) rate(from, to) += times * rate(last, to);
    }
  }
  return std::min(held_s[0] / rate(0, chain.lost), std::numeric_limits<double>::max());
}

/// A stripe of chains: losing any of them loses data. Each with its multiplicity.
struct Stripe {
  std::vector<std::pair<Chain, double>> chains;
  Budget budget;

  Result<void> add(const Structure& structure, double times) {
    auto chain = chain_of(structure, 0, budget);
    if (!chain) return add_parts(structure, times, chain.error());
    const auto states = static_cast<double>(chain->states.size());
    if (!budget.take(states * states * states / 25)) return too_many_states();  // most of its rates are 0
    chains.emplace_back(*std::move(chain), times);
    return {};
  }

  /// `error`: the reason why `structure` as a whole has no chain.
  Result<void> add_parts(const Structure& structure, double times, const Error& error) {
    if (structure.kind != Kind::code || structure.parity > 0) return pass_on(error);
    std::vector<std::pair<const Structure*, double>> known;  // equal parts are computed once
    for (const Structure& part : structure.parts) {
      const auto same = std::ranges::find_if(known, [&](const auto& entry) { return *entry.first == part; });
      if (same == known.end())
        known.emplace_back(&part, times);
      else
        same->second += times;
    }
    for (const auto& [part, part_times] : known)
      if (auto added = add(*part, part_times); !added) return added;
    return {};
  }
};

}  // namespace

Result<double> chain_mttdl_s(const Structure& structure) {
  Budget budget;
  const auto chain = chain_of(structure, 0, budget);
  if (chain) return absorption_s(*chain);
  Stripe stripe;
  if (const auto added = stripe.add_parts(structure, 1, chain.error()); !added) return pass_on(added.error());
  double losses_per_s = 0;
  for (const auto& [part, times] : stripe.chains) losses_per_s += times / absorption_s(part);
  return std::min(1 / losses_per_s, std::numeric_limits<double>::max());
}

}  // namespace iosig
