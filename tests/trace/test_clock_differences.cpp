#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "iosig/trace/clock_differences.h"

using namespace iosig::trace;

namespace {

/// A barrier that ranks enter at these true times and leave at the last one; the clock of rank r is `ahead[r]` ahead.
JoinedCall barrier(const std::vector<std::int64_t>& entered, const std::vector<std::int64_t>& ahead,
                   const std::vector<std::uint32_t>& clock) {
  const std::int64_t left = *std::max_element(entered.begin(), entered.end());
  JoinedCall call;
  for (std::size_t rank = 0; rank < entered.size(); ++rank)
    call.members.push_back({clock[rank], entered[rank] + ahead[rank], left + ahead[rank]});
  return call;
}

}  // namespace

TEST_CASE("clocks: a barrier bounds how far a clock is ahead, and its end tells how far it is") {
  // The example of the header: a enters at 10 and 14 and leaves at 14, b enters at 109 and leaves at 114.
  const std::vector<JoinedCall> calls{{.members = {{0, 10, 14}, {0, 14, 14}, {1, 109, 114}}}};
  const auto found = clock_differences(calls, 2);
  CHECK(found[0].state == ClockState::reference);
  CHECK(found[1].state == ClockState::ahead);
  CHECK(found[1].ahead_ns == 100);
  CHECK(found[1].at_least_ns == 95);
  CHECK(found[1].at_most_ns == 100);
  CHECK(found[1].calls == 1);
}

TEST_CASE("clocks: whatever the ranks do between barriers, the difference is found exactly") {
  std::mt19937_64 random(7);
  const std::vector<std::int64_t> ahead{0, 0, -7'000'000, 123'456'789'012};
  const std::vector<std::uint32_t> clock{0, 0, 1, 2};
  std::vector<JoinedCall> calls;
  for (int n = 0; n < 50; ++n) {
    std::vector<std::int64_t> entered;
    for (int rank = 0; rank < 4; ++rank)
      entered.push_back(1'000'000'000LL * n + static_cast<std::int64_t>(random() % 900'000'000));
    calls.push_back(barrier(entered, ahead, clock));
  }
  const auto found = clock_differences(calls, 3);
  CHECK(found[1].ahead_ns == -7'000'000);
  CHECK(found[2].ahead_ns == 123'456'789'012);
  for (const ClockDifference& each : {found[1], found[2]}) {
    CHECK(each.at_least_ns <= each.ahead_ns);
    CHECK(each.ahead_ns <= each.at_most_ns);
    CHECK(each.agreeing == 50);
  }
}

TEST_CASE("clocks: one barrier counts more than any number of files that each rank opens for itself") {
  // The clocks agree. The rank of the second host comes 400 later, and opens the file three times, as the other one
  // did.
  std::vector<JoinedCall> calls;
  for (std::int64_t at : {10, 20, 30})
    calls.push_back({.kind = JoinedKind::file, .members = {{0, at, at + 2}, {1, at + 400, at + 402}}});
  CHECK(clock_differences(calls, 2)[1].ahead_ns == 400);  // without a barrier it looks like this
  calls.push_back({.members = {{0, 50, 440}, {1, 440, 441}}});
  const auto found = clock_differences(calls, 2)[1];
  CHECK(found.ahead_ns == 1);
  CHECK(found.calls == 1);
}

TEST_CASE("clocks: calls that do not wait are outvoted; if they are the majority, the clocks stay as they are") {
  const std::vector<std::int64_t> ahead{0, 5000};
  const std::vector<std::uint32_t> clock{0, 1};
  std::vector<JoinedCall> calls;
  for (std::int64_t n = 0; n < 4; ++n) calls.push_back(barrier({1000 * n, 1000 * n + 50}, ahead, clock));
  // Each rank for itself: b calls 300 earlier than a, then 800, then 1400, at 10 each.
  for (const std::int64_t earlier : {300, 800, 1400})
    calls.push_back({.members = {{0, 9000, 9010}, {1, 14000 - earlier, 14010 - earlier}}});
  auto found = clock_differences(calls, 2);
  CHECK(found[1].ahead_ns == 5000);
  CHECK(found[1].agreeing == 4);
  CHECK(found[1].calls == 7);

  calls.erase(calls.begin());  // three of six are no majority
  found = clock_differences(calls, 2);
  CHECK(found[1].state == ClockState::contradictory);
  CHECK(found[1].ahead_ns == 0);
}

TEST_CASE("clocks: a clock is compared by way of another one; one without a call in common stays alone") {
  const std::vector<JoinedCall> calls{{.members = {{0, 0, 10}, {1, 100, 110}}},
                                      {.members = {{1, 200, 210}, {2, 0, 10}}}};
  const auto found = clock_differences(calls, 4);
  CHECK(found[1].ahead_ns == 100);
  CHECK(found[2].ahead_ns == -100);  // 200 behind that of 1, which is 100 ahead
  CHECK(found[3].state == ClockState::alone);
  for (const ClockDifference& each : clock_differences({}, 2)) CHECK(each.state == ClockState::alone);
}

TEST_CASE("clocks: calls that move data count only if there are no others") {
  // The transfer ends on b 400 before it ends on a: its own data are moved.
  std::vector<JoinedCall> calls{{.kind = JoinedKind::moves_data, .members = {{0, 0, 1000}, {1, 50, 600}}}};
  CHECK(clock_differences(calls, 2)[1].ahead_ns == -400);
  calls.push_back({.members = {{0, 2000, 2100}, {1, 2050, 2103}}});
  CHECK(clock_differences(calls, 2)[1].ahead_ns == 3);
}

TEST_CASE("clocks: a difference that is not above what the calls differ by is none") {
  const std::vector<JoinedCall> calls{{.members = {{0, 0, 100}, {1, 0, 104}}},
                                      {.members = {{0, 200, 300}, {1, 200, 298}}},
                                      {.members = {{0, 400, 500}, {1, 400, 503}}}};
  // Differences of the ends 4, -2, 3: the median is 3, and half of them are within 1 of it.
  CHECK(clock_differences(calls, 2)[1].ahead_ns == 3);
  const std::vector<JoinedCall> wider{calls[0], calls[1], {.members = {{0, 400, 500}, {1, 400, 501}}}};
  // 4, -2, 1: the median is 1, and half of them are within 3 of it.
  CHECK(clock_differences(wider, 2)[1].state == ClockState::close);
}

TEST_CASE("clocks: times of damage do not overflow, and shift nothing") {
  const std::int64_t most = INT64_MAX, least = INT64_MIN;
  const std::vector<JoinedCall> calls{{.members = {{0, 0, most}, {1, least, 10}, {2, most, most}, {3, least, least}}},
                                      {.members = {{0, least, 0}, {1, most, most}, {2, 0, 1}, {3, 0, least}}}};
  for (const ClockDifference& each : clock_differences(calls, 4)) CHECK(std::abs(each.ahead_ns) <= most / 2);
}
