#include "iosig/cost/simulate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "iosig/base/parallel.h"

namespace iosig {
namespace {

using Kind = Structure::Kind;
using Index = std::uint32_t;

constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::size_t max_simulated_devices = 100'000;
constexpr std::uint32_t max_simulated_levels = 64;
constexpr std::uint64_t events_per_batch = 4'000;
constexpr std::uint64_t pilot_events = 100'000;
constexpr std::size_t batches_per_round = 64, min_rounds = 2;
constexpr std::uint64_t lives_per_batch = 16;
constexpr std::uint64_t pilot_stream = std::uint64_t{1} << 63;  // random numbers that no batch uses
constexpr double max_retrials = 1e5;
// Limits for structures with few nodes. With more nodes an event takes longer, since it inspects every node's clock.
constexpr double run_events = 2e7;  ///< of one pilot run or batch
constexpr double lossless_events = 1e8;
constexpr double few_nodes = 50;
constexpr double warm_up_lives = 10;  ///< age at which a system with Weibull lifetimes counts as old

/// One device or code. Nodes are in preorder: the nodes below a node follow it.
struct Node {
  Kind kind = Kind::device;
  bool is_local_group = false;
  bool has_only_devices = true;
  Index parent = 0, end = 0;  ///< end: after the last node below this one
  Index striped = 0;          ///< the highest ancestor, or this node, with only stripes above it
  std::uint32_t parity = 0;
  double rate = 0;  ///< of rebuilds; of a device, 1 / the scale of its lifetime
  double unreadable = 0;
  std::vector<Index> parts = {};
};

bool is_stripe(const Node& node) { return node.kind == Kind::code && node.parity == 0; }

/// The structure as a list, and the distribution of its devices' lifetimes.
struct Model {
  std::vector<Node> nodes;
  std::vector<Index> codes;  ///< nodes that are not devices
  double shape = 1;
  double longest_life_s = 0;
  std::size_t devices = 0;
  std::uint64_t max_run_events = 0, max_events_without_loss = 0;

  Model(const Structure& structure, const SimulationOptions& options) : shape(options.weibull_shape) {
    add(structure, 0, false);
    const double share = 1 / (1 + static_cast<double>(nodes.size()) / few_nodes);
    max_run_events = std::min(options.max_events, static_cast<std::uint64_t>(share * run_events));
    max_events_without_loss = std::min(options.max_events, static_cast<std::uint64_t>(share * lossless_events));
  }

  [[nodiscard]] bool is_exponential() const { return shape == 1; }

  /// Returns the cumulative hazard of a device of this age: minus the logarithm of the surviving share.
  [[nodiscard]] double hazard(const Node& device, double age_s) const {
    const double scaled = age_s * device.rate;
    return is_exponential() ? scaled : std::pow(scaled, shape);
  }
  /// Returns the age at which the cumulative hazard is `hazard`.
  [[nodiscard]] double age_s(const Node& device, double hazard) const {
    return (is_exponential() ? hazard : std::pow(hazard, 1 / shape)) / device.rate;
  }

 private:
  Index add(const Structure& structure, Index parent, bool is_local_group) {
    const auto index = static_cast<Index>(nodes.size());
    const bool is_striped = nodes.empty() || (nodes[parent].striped == parent && is_stripe(nodes[parent]));
    nodes.push_back({.kind = structure.kind,
                     .is_local_group = is_local_group,
                     .parent = parent,
                     .striped = is_striped ? index : nodes[parent].striped,
                     .parity = structure.parity,
                     .rate = structure.repairs_per_s,
                     .unreadable = structure.unreadable});
    if (structure.kind == Kind::device) {
      // A Weibull lifetime of scale s has the mean s Gamma(1 + 1 / shape).
      nodes[index].rate = structure.failures_per_s * std::tgamma(1 + 1 / shape);
      longest_life_s = std::max(longest_life_s, 1 / structure.failures_per_s);
      ++devices;
    } else {
      codes.push_back(index);
    }
    for (const Structure& part : structure.parts) {
      const bool is_group = structure.kind == Kind::local_codes && part.kind == Kind::code;
      const Index added = add(part, index, is_group);
      if (part.kind != Kind::device) nodes[index].has_only_devices = false;
      nodes[index].parts.push_back(added);
    }
    nodes[index].end = static_cast<Index>(nodes.size());
    return index;
  }
};

/// What has failed at one time, and the time of each node's next event.
struct SimulatedState {
  struct Part {
    bool is_lost = false;
    std::uint32_t losses = 0;    ///< parts to be rebuilt by this code
    std::uint32_t excess = 0;    ///< losses that local groups cannot correct by themselves
    std::uint32_t distance = 0;  ///< minimum number of further device failures to lose it; 0: lost
    double born_s = 0;           ///< of a device
  };
  double now_s = 0;
  std::vector<double> clocks_s;  ///< of each node: end of its lifetime or of a rebuild
  std::vector<Part> parts;
};

enum class Outcome { goes_on, lost };

/// The result of one run of trials.
struct Tally {
  double time_s = 0;
  double weighted_losses = 0;
  std::uint64_t losses = 0, events = 0;
  bool is_cut = false;                   ///< reached its limit before its end
  std::vector<std::uint64_t> crossings;  ///< into each level from below, in all trials
};

/// Simulates states in one run. `retrials[level]`: how often a state that reaches a level is continued from there.
class Player {
 public:
  Player(const Model& model, std::vector<std::uint32_t> retrials, std::uint64_t seed, std::uint64_t stream)
      : nodes_(model.nodes), model_(model), retrials_(std::move(retrials)), max_events_(model.max_run_events) {
    std::seed_seq sequence{seed & 0xffffffff, seed >> 32, stream & 0xffffffff, stream >> 32};
    random_.seed(sequence);
    tally_.crossings.assign(retrials_.size(), 0);
    weights_.assign(retrials_.size(), 1);
    scratch_.resize(retrials_.size());
    for (std::size_t level = 1; level < retrials_.size(); ++level)
      weights_[level] = weights_[level - 1] / retrials_[level];
  }

  SimulatedState fresh() {
    SimulatedState state;
    state.clocks_s.assign(nodes_.size(), never);
    state.parts.resize(nodes_.size());
    renew(state, 0);
    return state;
  }

  /// Simulates cycles from new to new or lost for `events` events. Systems with Weibull lifetimes are aged first.
  Tally cycles(std::uint64_t events) {
    SimulatedState state = fresh();
    if (!model_.is_exponential()) {
      while (state.now_s < warm_up_lives * model_.longest_life_s && !is_at_bound())
        if (play_event(state) == Outcome::lost) renew(state, 0);
      tally_ = {.events = tally_.events, .crossings = std::vector<std::uint64_t>(retrials_.size(), 0)};
      events += tally_.events;
    }
    const double start_s = state.now_s;
    while (tally_.events < events && !is_at_bound()) {
      do {
        if (advance(state) == Outcome::lost) renew(state, 0);
      } while (!is_whole(state) && !is_at_bound());
    }
    tally_.time_s = state.now_s - start_s;
    tally_.is_cut = is_at_bound();
    return tally_;
  }

  /// Simulates from new to lost, `runs` times or until `max_events`. Only complete runs count, except in the events.
  Tally lives(std::uint64_t runs, std::uint64_t max_events) {
    max_events_ = std::min(max_events_, max_events);
    Tally tally;
    while (tally.losses < runs) {
      SimulatedState state = fresh();
      Outcome outcome = Outcome::goes_on;
      while (outcome == Outcome::goes_on && !is_at_bound()) outcome = play_event(state);
      tally.is_cut = outcome == Outcome::goes_on;
      if (tally.is_cut) break;
      ++tally.losses;
      tally.time_s += state.now_s;
    }
    tally.events = tally_.events;
    tally.weighted_losses = static_cast<double>(tally.losses);
    return tally;
  }

 private:
  [[nodiscard]] bool is_at_bound() const { return tally_.events >= max_events_; }
  [[nodiscard]] double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  [[nodiscard]] double exponential() { return -std::log1p(-uniform()); }

  [[nodiscard]] bool is_whole(const SimulatedState& state) const {
    return std::ranges::all_of(model_.codes, [&](Index code) { return state.clocks_s[code] == never; });
  }

  [[nodiscard]] bool has_no_spare(const SimulatedState& state, Index code) const {
    const SimulatedState::Part& part = state.parts[code];
    return part.losses + part.excess >= nodes_[code].parity;
  }

  // ---- distance to a loss ------------------------------------------------------------------------------------------

  /// Returns the distance of `code` from its parts' distances.
  [[nodiscard]] std::uint32_t distance_of(const SimulatedState& state, Index code) {
    const Node& node = nodes_[code];
    const SimulatedState::Part& self = state.parts[code];
    std::uint32_t needed = node.parity + 1 - std::min(node.parity, self.losses + self.excess);
    if (node.has_only_devices) return needed;
    const auto add_alive = [&](Index of) {
      for (const Index part : nodes_[of].parts)
        if (!state.parts[part].is_lost && !nodes_[part].is_local_group)
          distances_.push_back(state.parts[part].distance);
    };
    distances_.clear();
    add_alive(code);
    if (node.kind == Kind::local_codes) {
      // A group exports losses once its own parity is used up; groups with the least parity left come first.
      std::vector<std::pair<std::uint32_t, Index>> closed;
      for (const Index part : node.parts)
        if (nodes_[part].is_local_group) {
          const std::uint32_t spare = nodes_[part].parity - std::min(nodes_[part].parity, state.parts[part].losses);
          if (spare == 0) add_alive(part);
          if (spare > 0) closed.emplace_back(spare, part);
        }
      std::ranges::sort(closed);
      for (const auto& [spare, group] : closed) {
        if (distances_.size() >= needed) break;
        add_alive(group);
        needed += spare;
      }
    }
    needed = std::min(needed, static_cast<std::uint32_t>(distances_.size()));
    std::ranges::nth_element(distances_, distances_.begin() + (needed == 0 ? 0 : needed - 1));
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < needed; ++i) sum += distances_[i];
    return sum;
  }

  void update_distances(SimulatedState& state, Index node) {
    for (;; node = nodes_[node].parent) {
      if (nodes_[node].kind != Kind::device && !nodes_[node].is_local_group && !state.parts[node].is_lost)
        state.parts[node].distance = distance_of(state, node);
      if (node == 0) return;
    }
  }

  // ---- events ------------------------------------------------------------------------------------------------------

  /// Makes `node` and everything below it new.
  void renew(SimulatedState& state, Index node) {
    for (Index i = nodes_[node].end; i-- > node;) {  // parts before their codes
      SimulatedState::Part& part = state.parts[i];
      part = {.born_s = state.now_s};
      if (nodes_[i].kind == Kind::device) {
        part.distance = 1;
        state.clocks_s[i] = state.now_s + model_.age_s(nodes_[i], exponential());
      } else {
        state.clocks_s[i] = never;
        part.distance = nodes_[i].is_local_group ? 0 : distance_of(state, i);
      }
    }
  }

  void start_rebuilding(SimulatedState& state, Index code) {
    if (state.clocks_s[code] == never) state.clocks_s[code] = state.now_s + exponential() / nodes_[code].rate;
  }

  /// Marks a part as lost, and its ancestors if they are lost with it.
  Outcome lose(SimulatedState& state, Index part) {
    for (;;) {
      state.parts[part].is_lost = true;
      state.parts[part].distance = 0;
      std::fill(state.clocks_s.begin() + part, state.clocks_s.begin() + nodes_[part].end, never);
      if (part == 0) return Outcome::lost;
      Index code = nodes_[part].parent;
      ++state.parts[code].losses;
      start_rebuilding(state, code);
      if (nodes_[code].is_local_group) {
        const bool is_mended = state.parts[code].losses <= nodes_[code].parity;
        code = nodes_[code].parent;
        if (!is_mended) ++state.parts[code].excess;
      }
      if (state.parts[code].losses + state.parts[code].excess <= nodes_[code].parity) {
        update_distances(state, code);
        return Outcome::goes_on;
      }
      part = code;
    }
  }

  /// Returns the expected unreadable bits in `node` that it cannot correct by itself.
  [[nodiscard]] double unreadable_of(const SimulatedState& state, Index node) const {
    if (state.parts[node].is_lost) return 0;
    if (nodes_[node].kind == Kind::device) return nodes_[node].unreadable;
    if (!has_no_spare(state, node)) return 0;
    double sum = 0;
    for (const Index part : nodes_[node].parts) sum += unreadable_of(state, part);
    return sum;
  }

  /// Returns the expected unreadable bits in what a rebuild of `code` reads that nothing can correct.
  [[nodiscard]] double fatal_bits(const SimulatedState& state, Index code) const {
    if (nodes_[code].is_local_group && state.parts[code].losses > nodes_[code].parity) code = nodes_[code].parent;
    const double bits = unreadable_of(state, code);
    while (code != 0) {
      code = nodes_[code].parent;
      if (!has_no_spare(state, code)) return 0;
    }
    return bits;
  }

  /// Restores one of the lost parts, each with equal probability.
  void rebuild(SimulatedState& state, Index code) {
    SimulatedState::Part& self = state.parts[code];
    auto chosen = static_cast<std::uint32_t>(uniform() * self.losses);
    for (const Index part : nodes_[code].parts)
      if (state.parts[part].is_lost && chosen-- == 0) {
        renew(state, part);
        break;
      }
    if (nodes_[code].is_local_group && self.losses > nodes_[code].parity) --state.parts[nodes_[code].parent].excess;
    --self.losses;
    state.clocks_s[code] = never;
    if (self.losses > 0) start_rebuilding(state, code);
    update_distances(state, code);
  }

  /// Collects the devices whose next failure loses data. Requires that one failure suffices.
  void find_fatal(const SimulatedState& state, Index node, std::vector<Index>& fatal) const {
    if (nodes_[node].kind == Kind::device) return fatal.push_back(node);
    for (const Index part : nodes_[node].parts) {
      if (nodes_[part].is_local_group ? has_no_spare(state, part) : state.parts[part].distance == 1)
        find_fatal(state, part, fatal);
    }
  }

  /// Returns the probability that one of those devices fails before any other event.
  double fatal_chance(const SimulatedState& state) {
    fatal_.clear();
    find_fatal(state, 0, fatal_);
    double until_s = never;
    auto next_fatal = fatal_.begin();  // in the order of nodes
    for (Index i = 0; i < state.clocks_s.size(); ++i) {
      if (next_fatal != fatal_.end() && *next_fatal == i)
        ++next_fatal;
      else
        until_s = std::min(until_s, state.clocks_s[i]);
    }
    if (until_s == never) return 1;
    double hazard = 0;
    for (const Index device : fatal_) {
      const double born_s = state.parts[device].born_s;
      hazard += model_.hazard(nodes_[device], until_s - born_s) - model_.hazard(nodes_[device], state.now_s - born_s);
    }
    return -std::expm1(-hazard);
  }

  /// Simulates the next event, whatever its outcome.
  Outcome play_event(SimulatedState& state) {
    ++tally_.events;
    const double weight = weights_[level_of(state)];
    if (state.parts[0].distance == 1) tally_.weighted_losses += weight * fatal_chance(state);
    const auto next = std::ranges::min_element(state.clocks_s);
    const auto node = static_cast<Index>(next - state.clocks_s.begin());
    state.now_s = *next;
    if (nodes_[node].kind == Kind::device) return lose(state, node);
    if (const double bits = fatal_bits(state, node); bits > 0) {
      const double chance = -std::expm1(-bits);
      tally_.weighted_losses += weight * chance;
      if (uniform() < chance) return Outcome::lost;
    }
    rebuild(state, node);
    return Outcome::goes_on;
  }

  // ---- splitting ---------------------------------------------------------------------------------------------------

  /// Returns by how many device failures the distance to a loss has decreased.
  [[nodiscard]] std::size_t level_of(const SimulatedState& state) const {
    const std::size_t levels = retrials_.size(), distance = state.parts[0].distance;
    return levels - std::min(levels, distance);
  }

  /// Simulates the next event and all retrials that start from its outcome.
  Outcome advance(SimulatedState& state) {
    const std::size_t before = level_of(state);
    if (play_event(state) == Outcome::lost) {
      ++tally_.losses;
      return Outcome::lost;
    }
    split(state, before);
    return Outcome::goes_on;
  }

  void split(const SimulatedState& state, std::size_t before) {
    for (std::size_t level = before + 1; level <= level_of(state); ++level) {
      ++tally_.crossings[level];
      for (std::uint32_t trial = 1; trial < retrials_[level] && !is_at_bound(); ++trial) {
        SimulatedState& again = scratch_[level];  // further splits from here use higher levels only
        again = state;
        redraw_future(again);
        split(again, level);
        while (!is_at_bound() && advance(again) == Outcome::goes_on && level_of(again) >= level) {
        }
      }
    }
  }

  /// Draws a new future for the present state. Intact codes in a stripe keep theirs and share it with the other
  /// retrials: the small correlation costs far less than drawing them again.
  void redraw_future(SimulatedState& state) {
    Index known = 0;
    for (const Index code : model_.codes) {
      if (code < known || state.clocks_s[code] == never) continue;
      known = nodes_[nodes_[code].striped].end;
      for (Index i = nodes_[code].striped; i < known; ++i) {
        if (state.clocks_s[i] == never) continue;
        const Node& node = nodes_[i];
        if (node.kind != Kind::device || model_.is_exponential()) {
          state.clocks_s[i] = state.now_s + exponential() / node.rate;
        } else {
          const double born_s = state.parts[i].born_s;
          state.clocks_s[i] = born_s + model_.age_s(node, model_.hazard(node, state.now_s - born_s) + exponential());
        }
      }
    }
  }

  const std::vector<Node>& nodes_;
  const Model& model_;
  std::vector<std::uint32_t> retrials_;
  std::uint64_t max_events_;
  std::vector<double> weights_;
  std::mt19937_64 random_;
  Tally tally_;
  std::vector<SimulatedState> scratch_;   // by level
  std::vector<std::uint32_t> distances_;  // scratch
  std::vector<Index> fatal_;              // scratch
};

// ---- pilot, batches and their interval ------------------------------------------------------------------------------

/// What is determined first, and the events used for it.
struct Pilot {
  std::vector<std::uint32_t> retrials;  ///< of each level: as many as it takes to reach the next one about once
  bool is_young = false;  ///< systems lose data before they are old: each is simulated from new to its loss
  std::uint64_t events = 0;

  Pilot(const Model& model, std::uint32_t levels, const SimulationOptions& options) : retrials(levels, 1) {
    is_young = !model.is_exponential() && loses_young(model, options.seed);
    for (std::uint32_t level = 2; level < levels && !is_young; ++level) {
      report(options);
      const Tally tally = Player(model, retrials, options.seed, pilot_stream + level).cycles(pilot_events);
      events += tally.events;
      const double from = static_cast<double>(tally.crossings[level - 1]) * retrials[level - 1];
      const double reached = std::max(0.1, static_cast<double>(tally.crossings[level]));
      retrials[level] = static_cast<std::uint32_t>(std::clamp(from / reached, 1.0, max_retrials));
    }
    report(options);
  }

 private:
  bool loses_young(const Model& model, std::uint64_t seed) {
    constexpr std::uint64_t runs = 64;
    const Tally tally = Player(model, retrials, seed, pilot_stream).lives(runs, 10 * pilot_events);
    events += tally.events;
    return tally.losses == runs && tally.time_s / runs < 2 * warm_up_lives * model.longest_life_s;
  }

  void report(const SimulationOptions& options) const {
    if (options.on_progress) options.on_progress({.mttdl_s = never, .ci95_high_s = never, .events = events});
  }
};

/// Returns the ratio of the batches' times to their losses, with the variance by the delta method.
Simulation summary(const Pilot& pilot, const std::vector<Tally>& batches, double precision) {
  double time_s = 0, weighted = 0, squares = 0;
  Simulation result{.mttdl_s = never, .ci95_high_s = never, .events = pilot.events};
  for (const Tally& batch : batches) {
    time_s += batch.time_s;
    weighted += batch.weighted_losses;
    result.losses += batch.losses;
    result.events += batch.events;
  }
  if (weighted == 0) return result;
  result.mttdl_s = time_s / weighted;
  for (const Tally& batch : batches) {
    const double residual = batch.time_s - result.mttdl_s * batch.weighted_losses;
    squares += residual * residual;
  }
  const auto count = static_cast<double>(batches.size());
  const double half_s = 1.96 * std::sqrt(squares * count / (count - 1)) / weighted;
  result.ci95_low_s = std::max(0.0, result.mttdl_s - half_s);
  result.ci95_high_s = result.mttdl_s + half_s;
  result.is_precise = half_s <= precision * result.mttdl_s;
  return result;
}

}  // namespace

Result<Simulation> simulate_mttdl(const Structure& structure, const SimulationOptions& options) {
  if (!(options.precision > 0 && options.precision < 1))
    return fail(ErrorKind::usage, "the precision is {}; expected more than 0 and less than 1", options.precision);
  if (!(options.weibull_shape >= 0.1 && options.weibull_shape <= 10))
    return fail(ErrorKind::usage, "the Weibull shape is {}; expected 0.1 to 10", options.weibull_shape);
  const Model model(structure, options);
  if (model.devices > max_simulated_devices)
    return fail(ErrorKind::infeasible, "there are {} devices to simulate; at most {} can be", model.devices,
                max_simulated_devices);
  const std::uint32_t levels = Player(model, {1}, 0, 0).fresh().parts[0].distance;
  if (levels > max_simulated_levels)
    return fail(ErrorKind::infeasible, "only {} failures at once lose data, which is never; at most {} are simulated",
                levels, max_simulated_levels);

  const Pilot pilot(model, levels, options);
  const auto play_batch = [&](std::uint64_t batch) {
    Player player(model, pilot.retrials, options.seed, batch);
    return pilot.is_young ? player.lives(lives_per_batch, UINT64_MAX) : player.cycles(events_per_batch);
  };
  std::vector<Tally> batches;
  for (;;) {
    const std::size_t first = batches.size();
    batches.resize(first + batches_per_round);
    std::atomic<bool> is_cut = false;
    for_each_in_parallel(batches_per_round, options.threads, [&](std::size_t n) {
      if (is_cut) return;
      batches[first + n] = play_batch(first + n);
      if (batches[first + n].is_cut) is_cut = true;
    });
    if (is_cut)
      return fail(ErrorKind::infeasible,
                  "too much fails at once to be simulated: {} failures and rebuildings did not lead back to a system "
                  "that is whole; 'iosig reliability mttdl' may compute it",
                  model.max_run_events);
    const Simulation so_far = summary(pilot, batches, options.precision);
    if (options.on_progress) options.on_progress(so_far);
    const bool is_lossless = !std::isfinite(so_far.mttdl_s);
    if (is_lossless && so_far.events >= model.max_events_without_loss)
      return fail(
          ErrorKind::infeasible,
          "losses are too rare to be simulated: {} failures and rebuildings had none; 'iosig reliability mttdl' may "
          "compute it",
          so_far.events);
    const bool is_done = so_far.is_precise && batches.size() >= min_rounds * batches_per_round;
    if (is_done || (!is_lossless && so_far.events >= options.max_events)) return so_far;
  }
}

}  // namespace iosig
