// Algorithm 2 of the H2DP paper, and the order of moves within capacity.
#include <algorithm>
#include <cmath>
#include <limits>

#include "iosig/base/units.h"
#include "iosig/decide/migration.h"

namespace iosig {
namespace {

constexpr double max_windows = 1 << 20U;

/// Bytes on a server of each class while regions move.
class MovingRoom {
 public:
  MovingRoom(std::span<const RegionOptions> regions, const Servers& servers, std::span<const std::uint32_t> at)
      : used_(servers.classes.size()) {
    for (const ServerClass& each : servers.classes) room_.push_back(each.capacity_bytes.value_or(max_bytes));
    for (std::size_t n = 0; n < regions.size(); ++n) add(regions[n].options[at[n]].server_bytes);
  }
  /// Whether a copy fits beside all that is there.
  [[nodiscard]] bool fits(const LayoutOption& copy) const {
    for (std::size_t number = 0; number < room_.size(); ++number)
      if (copy.server_bytes[number] > 0 &&
          (used_[number] > room_[number] || copy.server_bytes[number] > room_[number] - used_[number]))
        return false;
    return true;
  }
  void move(const LayoutOption& from, const LayoutOption& to) {
    add(to.server_bytes);
    for (std::size_t number = 0; number < used_.size(); ++number) used_[number] -= from.server_bytes[number];
  }

 private:
  void add(const std::vector<std::uint64_t>& bytes) {
    for (std::size_t number = 0; number < used_.size(); ++number) used_[number] += bytes[number];
  }
  std::vector<std::uint64_t> used_, room_;
};

/// Returns whether a change leaves less on the servers outside of the home class.
bool frees_scarce_space(const LayoutOption& from, const LayoutOption& to, std::uint32_t home) {
  double before = 0, after = 0;
  for (std::size_t number = 0; number < from.server_bytes.size(); ++number) {
    if (number == home) continue;
    before += static_cast<double>(from.server_bytes[number]);
    after += static_cast<double>(to.server_bytes[number]);
  }
  return after < before;
}

}  // namespace

Result<std::vector<Window>> fixed_windows(std::vector<Request>& requests, double window_s) {
  if (!(std::isfinite(window_s) && window_s > 0))
    return fail(ErrorKind::usage, "windows of {} s: expected more than 0", window_s);
  for (const Request& each : requests)
    if (!std::isfinite(each.start_s))
      return fail(ErrorKind::bad_input, "request of {} bytes at offset {}: its start is no number", each.length,
                  each.offset);
  std::vector<Window> windows;
  if (requests.empty()) return windows;
  std::ranges::stable_sort(requests, {}, &Request::start_s);
  const double first_s = requests.front().start_s, length_s = requests.back().start_s - first_s;
  if (length_s / window_s >= max_windows)
    return fail(ErrorKind::usage, "{} of requests in windows of {}: more than {} windows; use longer ones",
                seconds_text(length_s), seconds_text(window_s), max_windows);
  for (std::size_t at = 0; at < requests.size(); ++at) {
    const auto number = static_cast<std::size_t>((requests[at].start_s - first_s) / window_s);
    while (windows.size() <= number) {
      const auto n = static_cast<double>(windows.size());
      windows.push_back(
          {.start_s = first_s + n * window_s, .end_s = first_s + (n + 1) * window_s, .first = at, .last = at});
    }
    windows.back().last = at + 1;
  }
  return windows;
}

std::vector<PaperMoves> paper_migration(std::span<const std::vector<bool>> is_hybrid) {
  std::vector<PaperMoves> moves(is_hybrid.size());
  for (std::size_t i = 1; i < is_hybrid.size(); ++i)
    for (std::uint32_t region = 0; region < is_hybrid[i].size(); ++region) {
      if (is_hybrid[i - 1][region] && !is_hybrid[i][region]) moves[i].out.push_back(region);
      if (!is_hybrid[i - 1][region] && is_hybrid[i][region]) moves[i].in.push_back(region);
    }
  return moves;
}

std::vector<MigrationStep> ordered_steps(std::span<const RegionOptions> regions, std::span<const std::uint64_t> lengths,
                                         const Servers& servers, std::span<const std::uint32_t> from,
                                         std::vector<std::uint32_t>& to) {
  const std::uint32_t home = home_class(servers);
  MovingRoom room(regions, servers, from);
  std::vector<MigrationStep> outs, pending;
  for (std::uint32_t n = 0; n < regions.size(); ++n) {
    if (from[n] == to[n]) continue;
    MigrationStep step{.region = n, .from = from[n], .to = to[n], .bytes = lengths[n], .is_out = false};
    step.is_out = frees_scarce_space(regions[n].options[from[n]], regions[n].options[to[n]], home);
    (step.is_out ? outs : pending).push_back(step);
  }
  pending.insert(pending.begin(), outs.begin(), outs.end());
  std::vector<MigrationStep> steps;
  const auto take = [&](const MigrationStep& step) {
    const std::vector<LayoutOption>& options = regions[step.region].options;
    if (!room.fits(options[step.to])) return false;
    room.move(options[step.from], options[step.to]);
    steps.push_back(step);
    return true;
  };
  for (bool moved = true; moved;) moved = std::erase_if(pending, take) > 0;
  // A region that changes its stripes may have no room for both copies: it goes home first.
  for (MigrationStep step : pending) {
    const MigrationStep away{.region = step.region, .from = step.from, .to = 0, .bytes = step.bytes, .is_out = true};
    to[step.region] = step.from;
    if (step.from == 0 || step.to == 0 || !take(away)) continue;
    step.from = 0;
    to[step.region] = take(step) ? step.to : 0;
  }
  return steps;
}

}  // namespace iosig
