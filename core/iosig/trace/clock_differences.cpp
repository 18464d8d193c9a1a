#include "iosig/trace/clock_differences.h"

#include <algorithm>
#include <map>
#include <utility>

namespace iosig::trace {
namespace {

constexpr std::uint64_t max_ahead_ns = std::uint64_t{1} << 61;  ///< 73 years: of damage

// Damaged traces may have any times: these do not overflow.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::uint64_t magnitude(std::int64_t number) {
  return number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
}

/// The members of a call that have one clock.
struct Side {
  std::int64_t last_start_ns = INT64_MIN, first_end_ns = INT64_MAX;

  void add(std::int64_t start_ns, std::int64_t end_ns) {
    last_start_ns = std::max(last_start_ns, start_ns);
    first_end_ns = std::min(first_end_ns, end_ns);
  }
};

/// The bounds that one call gives for how far a clock is ahead.
struct Evidence {
  JoinedKind kind = JoinedKind::barrier;
  std::int64_t at_least_ns = 0, at_most_ns = 0, guess_ns = 0;

  [[nodiscard]] bool allows(std::int64_t ahead_ns) const { return at_least_ns <= ahead_ns && ahead_ns <= at_most_ns; }
};

template <class Number>
Number median(std::vector<Number>& numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>((numbers.size() - 1) / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

std::uint64_t distance(std::int64_t number, std::pair<std::int64_t, std::int64_t> range) {
  return magnitude(minus(number, std::clamp(number, range.first, range.second)));
}

/// The range that the most calls allow; of several, the one nearest to `guess_ns`.
std::pair<std::int64_t, std::int64_t> agreed_range(const std::vector<Evidence>& evidence, std::int64_t guess_ns) {
  std::vector<std::pair<std::int64_t, int>> edges;  // a range opens (0) before another one closes (1) at the same place
  for (const Evidence& each : evidence)
    if (each.at_least_ns <= each.at_most_ns) edges.insert(edges.end(), {{each.at_least_ns, 0}, {each.at_most_ns, 1}});
  std::ranges::sort(edges);
  std::pair<std::int64_t, std::int64_t> best{0, 0};
  std::uint64_t open = 0, most = 0;
  for (std::size_t n = 0; n < edges.size(); ++n) {
    if (edges[n].second == 1) {
      --open;
      continue;
    }
    ++open;
    const std::pair range(edges[n].first, edges[n + 1].first);  // the last edge closes
    if (open < most || (open == most && distance(guess_ns, best) <= distance(guess_ns, range))) continue;
    most = open;
    best = range;
  }
  return best;
}

ClockDifference difference_by(std::vector<Evidence> evidence) {
  const JoinedKind surest = std::ranges::min_element(evidence, {}, &Evidence::kind)->kind;
  std::erase_if(evidence, [&](const Evidence& each) { return each.kind != surest; });
  ClockDifference found{.state = ClockState::contradictory, .calls = evidence.size()};
  std::vector<std::int64_t> guesses;
  for (const Evidence& each : evidence) guesses.push_back(each.guess_ns);
  const auto [at_least, at_most] = agreed_range(evidence, median(guesses));
  guesses.clear();
  for (const Evidence& each : evidence)
    if (each.at_least_ns <= at_least && at_most <= each.at_most_ns) guesses.push_back(each.guess_ns);
  found.agreeing = guesses.size();
  if (2 * found.agreeing <= found.calls) return found;
  const std::int64_t ahead = std::clamp(median(guesses), at_least, at_most);
  if (magnitude(ahead) > max_ahead_ns) return found;
  found.at_least_ns = at_least;
  found.at_most_ns = at_most;
  std::vector<std::uint64_t> spread;
  for (const std::int64_t guess : guesses) spread.push_back(magnitude(minus(guess, ahead)));
  const bool is_close = at_least <= 0 && 0 <= at_most && magnitude(ahead) <= median(spread);
  found.state = is_close ? ClockState::close : ClockState::ahead;
  found.ahead_ns = is_close ? 0 : ahead;
  return found;
}

}  // namespace

std::vector<ClockDifference> clock_differences(std::span<const JoinedCall> calls, std::uint32_t count) {
  std::vector<ClockDifference> found(count);
  if (calls.empty()) return found;
  std::vector<bool> is_placed(count), is_decided(count);
  const std::uint32_t reference = calls.front().members.front().clock;
  is_placed[reference] = is_decided[reference] = true;
  found[reference].state = ClockState::reference;
  for (bool is_new = true; is_new;) {
    is_new = false;
    std::map<std::uint32_t, std::vector<Evidence>> evidence;
    for (const JoinedCall& call : calls) {
      Side placed;
      std::map<std::uint32_t, Side> others;
      for (const TimedCall& each : call.members) {
        const std::int64_t ahead_ns = found[each.clock].ahead_ns;
        if (is_placed[each.clock])
          placed.add(minus(each.start_ns, ahead_ns), minus(each.end_ns, ahead_ns));
        else if (!is_decided[each.clock])
          others[each.clock].add(each.start_ns, each.end_ns);
      }
      if (placed.last_start_ns == INT64_MIN) continue;
      for (const auto& [clock, side] : others)
        evidence[clock].push_back({.kind = call.kind,
                                   .at_least_ns = minus(side.last_start_ns, placed.first_end_ns),
                                   .at_most_ns = minus(side.first_end_ns, placed.last_start_ns),
                                   .guess_ns = minus(side.first_end_ns, placed.first_end_ns)});
    }
    for (auto& [clock, of_clock] : evidence) {
      found[clock] = difference_by(std::move(of_clock));
      is_decided[clock] = true;
      is_placed[clock] = found[clock].state != ClockState::contradictory;
      is_new = is_new || is_placed[clock];
    }
  }
  return found;
}

}  // namespace iosig::trace
