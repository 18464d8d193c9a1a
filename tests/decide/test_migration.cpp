// Moves between windows: Algorithm 2 by its text, the order of ours step by step, and what moves cost and bring.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "iosig/base/units.h"
#include "iosig/decide/migration.h"

using namespace iosig;

namespace {

constexpr std::uint64_t length = 64 * MiB;

Servers small_servers(std::uint64_t slow_room, std::uint64_t fast_room) {
  return {.classes = {{"hdd", 1, {0, 1e-8}, {0, 1e-8}, slow_room}, {"ssd", 1, {0, 1e-9}, {0, 1e-9}, fast_room}},
          .network = {0, 1e-12},
          .processes = 1000,
          .processes_per_node = 1};
}

/// `slow_s` on the slow server alone, a tenth of it on the fast one alone, 60 % and 4 % on both.
RegionOptions options_for(double slow_s) {
  const auto option = [&](Stripes stripes, double on_slow, double on_fast) {
    LayoutOption made;
    const std::uint64_t parts = stripes[0] + stripes[1];
    made.load.classes = {{on_slow, 0, on_slow, 0}, {on_fast, 0, on_fast, 0}};
    made.server_bytes = {length / parts * stripes[0], length / parts * stripes[1]};
    made.seconds = std::max(on_slow, on_fast);
    made.stripes = std::move(stripes);
    return made;
  };
  return {{option({1, 0}, slow_s, 0), option({0, 1}, 0, slow_s / 10), option({1, 1}, 0.6 * slow_s, 0.04 * slow_s)}};
}

std::vector<RegionOptions> window_of(const std::vector<double>& slow_s) {
  std::vector<RegionOptions> window;
  for (const double each : slow_s) window.push_back(options_for(each));
  return window;
}

double total_s(const std::vector<WindowPlan>& plans) {
  double sum = 0;
  for (const WindowPlan& plan : plans) sum += plan.seconds + plan.move_s;
  return sum;
}

/// Fails where a server ever holds more than its room: the old copy goes when the new one is whole.
void check_steps(const std::vector<RegionOptions>& regions, const Servers& servers, std::vector<std::uint32_t> at,
                 const std::vector<MigrationStep>& steps, const std::vector<std::uint32_t>& to) {
  std::vector<std::uint64_t> used(2);
  const auto put = [&](const LayoutOption& option, bool gone) {
    for (std::size_t k = 0; k < 2; ++k) used[k] += gone ? 0 - option.server_bytes[k] : option.server_bytes[k];
  };
  for (std::size_t n = 0; n < at.size(); ++n) put(regions[n].options[at[n]], false);
  for (const MigrationStep& step : steps) {
    CHECK(at[step.region] == step.from);
    CHECK(step.from != step.to);
    put(regions[step.region].options[step.to], false);
    CHECK(used[0] <= *servers.classes[0].capacity_bytes);
    CHECK(used[1] <= *servers.classes[1].capacity_bytes);
    put(regions[step.region].options[step.from], true);
    at[step.region] = step.to;
  }
  CHECK(at == to);
}

}  // namespace

TEST_CASE("windows: by the clock from the first start on, also empty ones and negative times") {
  std::vector<Request> requests{{.offset = 3, .length = 1, .start_s = 25},
                                {.offset = 1, .length = 1, .start_s = -5},
                                {.offset = 2, .length = 1, .start_s = 4.9}};
  const auto windows = fixed_windows(requests, 10);
  REQUIRE(windows->size() == 4);  // -5 to 5, to 15, to 25, to 35
  CHECK(requests[0].offset == 1);
  CHECK(windows->at(0).last == 2);
  CHECK(windows->at(1).first == windows->at(1).last);
  CHECK(windows->at(3).start_s == 25);
  CHECK(windows->at(3).first == 2);
  CHECK(windows->at(3).last == 3);
  std::vector<Request> none, one{{.length = 1, .start_s = 1e300}};
  CHECK(fixed_windows(none)->empty());
  CHECK(fixed_windows(one)->size() == 1);
  CHECK(fixed_windows(requests, 0).error().kind == ErrorKind::usage);
  CHECK(fixed_windows(requests, 1e-9).error().kind == ErrorKind::usage);
  one[0].start_s = std::numeric_limits<double>::quiet_NaN();
  CHECK(fixed_windows(one).error().kind == ErrorKind::bad_input);
}

TEST_CASE("paper migration: outs and ins of each window after the first, nothing for regions that stay") {
  const std::vector<std::vector<bool>> hybrid{{true, false, true, false}, {false, true, true, false}};
  const auto moves = paper_migration(hybrid);
  CHECK(moves[0].out.empty());
  CHECK(moves[0].in.empty());
  CHECK(moves[1].out == std::vector<std::uint32_t>{0});
  CHECK(moves[1].in == std::vector<std::uint32_t>{1});
}

TEST_CASE("migration: a copy reads and writes each byte once") {
  const Servers servers = small_servers(TiB, TiB);
  const Load load = copy_load(servers, {1, 0}, {1, 3}, 1000);
  CHECK(load.classes[0].storage_s == doctest::Approx(1000e-8 + 250e-8));
  CHECK(load.classes[1].storage_s == doctest::Approx(750e-9));
  CHECK(load.classes[0].network_s == doctest::Approx(1000e-12));  // out 1000, in 250: full duplex
}

TEST_CASE("migration: steps never exceed a server's room, whatever the layouts before and after") {
  std::mt19937_64 random(6);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  int moved = 0, left_out = 0;
  for (int n = 0; n < 500; ++n) {
    const std::size_t count = 1 + random() % 12;
    const std::vector<RegionOptions> regions = window_of(std::vector<double>(count, 1));
    std::vector<std::uint64_t> lengths(count, length), used(2);
    std::vector<std::uint32_t> from, to;
    // Room for either layout, and often not a byte more.
    std::vector<std::uint64_t> before(2), after(2);
    for (std::size_t k = 0; k < count; ++k) {
      from.push_back(static_cast<std::uint32_t>(random() % 3));
      to.push_back(static_cast<std::uint32_t>(random() % 3));
      for (std::size_t of = 0; of < 2; ++of) {
        before[of] += regions[k].options[from[k]].server_bytes[of];
        after[of] += regions[k].options[to[k]].server_bytes[of];
      }
    }
    const std::uint64_t slack = random() % 3 * length / 2;
    const Servers servers = small_servers(std::max(before[0], after[0]) + slack + random() % 2 * TiB,
                                          std::max(before[1], after[1]) + slack);
    const std::vector<std::uint32_t> wanted = to;
    const auto steps = ordered_steps(regions, lengths, servers, from, to);
    check_steps(regions, servers, from, steps, to);
    moved += static_cast<int>(steps.size());
    left_out += to == wanted ? 0 : 1;
  }
  CHECK(moved > 1000);
  CHECK(left_out < 200);
}

TEST_CASE("migration: outs come before ins; a full server changes places by way of the other") {
  const std::vector<RegionOptions> regions = window_of({1, 1});
  const Servers servers = small_servers(TiB, length);
  const std::vector<std::uint64_t> lengths(2, length);
  std::vector<std::uint32_t> to{1, 0};
  const auto steps = ordered_steps(regions, lengths, servers, std::vector<std::uint32_t>{0, 1}, to);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].region == 1);
  CHECK(steps[0].is_out);
  CHECK(steps[1].region == 0);
  CHECK_FALSE(steps[1].is_out);
  // Both copies of a region that becomes all fast do not fit: half there, all to come.
  std::vector<std::uint32_t> all{1};
  const auto restriped =
      ordered_steps(window_of({1}), std::vector<std::uint64_t>{length}, servers, std::vector<std::uint32_t>{2}, all);
  REQUIRE(restriped.size() == 2);
  CHECK(restriped[0].to == 0);
  CHECK(restriped[1].to == 1);
  CHECK(all == std::vector<std::uint32_t>{1});
}

TEST_CASE("migration: a region moves only if what it saves exceeds the copy") {
  // A copy takes the slow server 64 MiB * 10 ns = 0.67 s. On the fast server a region's time falls to a tenth.
  const Servers servers = small_servers(TiB, length);
  const std::vector<std::uint64_t> lengths(2, length);
  const std::vector<std::uint32_t> current{1, 0};
  const auto planned = [&](double other_s, std::uint32_t horizon) {
    const std::vector<std::vector<RegionOptions>> windows{window_of({0.01, other_s})};
    MigrationOptions options;
    options.horizon = horizon;
    return plan_migration(windows, lengths, servers, Contention::together, current, options).value();
  };
  CHECK(planned(1, 1)[0].steps.empty());       // saves 0.9 s, costs 0.67 s out and 0.67 s in
  CHECK(planned(2, 1)[0].steps.size() == 2);   // saves 1.8 s
  CHECK(planned(1, 10)[0].steps.size() == 2);  // ten times 0.9 s
}

TEST_CASE("migration: never more than staying, than moving at will, or than any one layout for all windows") {
  std::mt19937_64 random(8);  // NOLINT(bugprone-random-generator-seed,cert-msc51-cpp): the same every time
  for (int n = 0; n < 40; ++n) {
    const Contention contention = n % 2 == 0 ? Contention::together : Contention::spread;
    const Servers servers = small_servers(TiB, 2 * length);
    const std::vector<std::uint64_t> lengths(5, length);
    std::vector<std::vector<RegionOptions>> windows;
    for (int i = 0; i < 4; ++i) {
      std::vector<double> slow_s;
      for (int k = 0; k < 5; ++k) slow_s.push_back(static_cast<double>(random() % 100) / 20);
      windows.push_back(window_of(slow_s));
    }
    const std::vector<std::uint32_t> current{0, 0, 1, 1, 0};
    const auto plans = plan_migration(windows, lengths, servers, contention, current).value();
    double stay_s = 0;
    std::vector<std::uint32_t> at = current;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      check_steps(windows[i], servers, at, plans[i].steps, plans[i].option);
      at = plans[i].option;
      std::vector<Load> loads;
      for (std::size_t k = 0; k < 5; ++k) loads.push_back(windows[i][k].options[current[k]].load);
      stay_s += loaded_seconds(servers, loads, contention);
    }
    CHECK(total_s(plans) <= stay_s * (1 + 1e-9));
    const auto free = plan_migration(windows, lengths, servers, contention).value();
    CHECK(free[0].steps.empty());
    CHECK(total_s(free) <= total_s(plans) * 1.05);
  }
}

TEST_CASE("migration: window by window as incremental plans; sizes that differ are refused") {
  const Servers servers = small_servers(TiB, length);
  const std::vector<std::uint64_t> lengths(2, length);
  const std::vector<std::vector<RegionOptions>> first{window_of({50, 1})}, second{window_of({1, 50})};
  const auto one = plan_migration(first, lengths, servers, Contention::together).value();
  CHECK(one[0].option == std::vector<std::uint32_t>{1, 0});
  const auto two = plan_migration(second, lengths, servers, Contention::together, one[0].option).value();
  CHECK(two[0].option == std::vector<std::uint32_t>{0, 1});
  CHECK(two[0].steps.size() == 2);
  CHECK(plan_migration(first, std::vector<std::uint64_t>{1}, servers, Contention::together).error().kind ==
        ErrorKind::usage);
  CHECK(plan_migration(first, lengths, servers, Contention::together, std::vector<std::uint32_t>{0, 7}).error().kind ==
        ErrorKind::usage);
  CHECK(plan_migration({}, {}, servers, Contention::together)->empty());
}

TEST_CASE("migration: options are the same in all windows, each with the window's load") {
  const Servers servers = small_servers(TiB, TiB);
  const auto region = [](std::uint64_t bytes, std::uint64_t count) {
    return Region{
        .file = 0,
        .offset = 0,
        .length = length,
        .groups = {{.length = bytes, .stride = bytes, .count = count, .places = default_region_bytes / bytes}}};
  };
  const std::vector<std::vector<Region>> regions{{region(4096, 1000)}, {region(MiB, 10)}, {Region{0, 0, length, {}}}};
  const auto windows = same_options(regions, servers);
  REQUIRE(windows.size() == 3);
  for (const auto& window : windows) {
    REQUIRE(window[0].options.size() == windows[0][0].options.size());
    CHECK(window[0].options.size() <= 8);
    CHECK(window[0].options[0].stripes[1] == 0);  // at home
    for (std::size_t k = 0; k < window[0].options.size(); ++k)
      CHECK(window[0].options[k].stripes == windows[0][0].options[k].stripes);
  }
  CHECK(windows[0][0].options[0].load.requests == 1000);
  CHECK(windows[1][0].options[0].load.requests == 10);
  CHECK(windows[2][0].options[0].seconds == 0);
}
