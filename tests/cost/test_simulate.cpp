#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "iosig/cost/markov.h"
#include "iosig/cost/simulate.h"
#include "structures.h"

using namespace iosig;

namespace {

/// Agrees with the chain within twice the interval (four standard errors: by chance once in 16,000).
void check_against_chain(const Structure& structure, double precision = 0.05) {
  const auto found = simulate_mttdl(structure, {.precision = precision});
  REQUIRE(found);
  const double chain_s = *chain_mttdl_s(structure), half_s = (found->ci95_high_s - found->ci95_low_s) / 2;
  CHECK(found->is_precise);
  CHECK(std::abs(found->mttdl_s - chain_s) < 2 * half_s);
}

}  // namespace

TEST_CASE("simulation: agrees with the chain") {
  check_against_chain(code(2, device(10 * year_s, unreadable_of_1tb), 1));
  check_against_chain(code(5, device(10 * year_s, unreadable_of_1tb), 1));
  check_against_chain(code(6, device(year_s, 0.2), 2, 60 * day_s));  // rebuilding takes as long as living
  check_against_chain(code(3, device(10 * day_s), 1, 100 * day_s));
  check_against_chain(code({device(year_s), device(3 * year_s), device(10 * year_s, 0.01)}, 1, 10 * day_s));
}

TEST_CASE("simulation: agrees with the chain for nested codes and local reconstruction codes") {
  const Structure disk = device(year_s, 0.1);
  check_against_chain(code(4, code(2, disk, 1, 5 * day_s), 0, 5 * day_s));
  check_against_chain(code(2, code(4, disk, 1, 20 * day_s), 1, 20 * day_s));
  check_against_chain(code(2, code(3, disk, 0), 1, 5 * day_s));
  check_against_chain(local_codes(2, 3, 1, disk, 10 * day_s));
  check_against_chain(local_codes(2, 6, 2, device(year_s), 30 * day_s));
}

TEST_CASE("simulation: reaches a loss in sixty million years") { check_against_chain(code(11, device(), 3), 0.15); }

TEST_CASE("simulation: a seed gives one result, whatever the number of threads") {
  const Structure structure = code(6, device(), 2);
  const auto one = simulate_mttdl(structure, {.seed = 3, .threads = 1});
  const auto many = simulate_mttdl(structure, {.seed = 3, .threads = 5});
  CHECK(one->mttdl_s == many->mttdl_s);
  CHECK(one->ci95_low_s == many->ci95_low_s);
  CHECK(one->losses == many->losses);
  CHECK(simulate_mttdl(structure, {.seed = 4})->mttdl_s != one->mttdl_s);
}

TEST_CASE("simulation: Weibull lives: the mean stays the MTTF, and wearing out together loses sooner or later") {
  // One device: its life's mean, whatever the shape
  for (const double shape : {0.7, 1.0, 2.0, 4.0}) {
    const auto found = simulate_mttdl(code(1, device(year_s), 0), {.precision = 0.02, .weibull_shape = shape});
    CHECK(found->mttdl_s == doctest::Approx(year_s).epsilon(0.05));
  }
  // Without repairs two devices of shape k last (2 - 2^(-1/k)) lives: the mean of the larger of two
  for (const double shape : {0.7, 2.0, 4.0}) {
    const auto found =
        simulate_mttdl(code(2, device(year_s), 1, 1e7 * year_s), {.precision = 0.02, .weibull_shape = shape});
    CHECK(found->mttdl_s == doctest::Approx((2 - std::pow(2, -1 / shape)) * year_s).epsilon(0.05));
  }
  // Old systems of which each part has another age fail as if at a constant rate.
  const Structure mirror = code(2, device(), 1);
  const auto old = simulate_mttdl(mirror, {.weibull_shape = 2});
  CHECK(old->mttdl_s == doctest::Approx(*chain_mttdl_s(mirror)).epsilon(0.1));
}

TEST_CASE("simulation: what never loses, or is never whole, ends by a count of events, with the same words") {
  const auto message = [](const Structure& structure, unsigned threads) {
    const auto found = simulate_mttdl(structure, {.threads = threads, .max_events = 20'000});
    REQUIRE(!found);
    CHECK(found.error().kind == ErrorKind::infeasible);
    return found.error().message;
  };
  const Structure rare = code(10, device(1e8 * year_s), 9, 1e-3);
  CHECK(message(rare, 1).find("too rare") != std::string::npos);
  CHECK(message(rare, 1) == message(rare, 3));
  // 400 times six replicas: 66 devices are being rebuilt at any time, so that none is is one chance in e^66.
  const Structure busy = code(400, code(6, device(year_s), 5, 10 * day_s), 0);
  CHECK(message(busy, 2).find("whole") != std::string::npos);
}

TEST_CASE("simulation: progress is told from the pilot on, as nothing known while there was no loss") {
  std::vector<Simulation> told;
  const auto found =
      simulate_mttdl(code(6, device(), 3),
                     {.precision = 0.5, .on_progress = [&](const Simulation& so_far) { told.push_back(so_far); }});
  REQUIRE(told.size() > 3);
  CHECK(told.front().events == 0);
  CHECK(std::isinf(told.front().mttdl_s));
  CHECK(std::isinf(told[2].mttdl_s));  // of the pilot for the third of four failures
  CHECK(told[2].events >= 200'000);
  CHECK(told.back().mttdl_s == found->mttdl_s);
  CHECK(std::ranges::is_sorted(told, {}, &Simulation::events));
}

TEST_CASE("simulation: what cannot be simulated is said") {
  CHECK(simulate_mttdl(code(2, device(), 1), {.precision = 0}).error().kind == ErrorKind::usage);
  CHECK(simulate_mttdl(code(2, device(), 1), {.weibull_shape = -1}).error().kind == ErrorKind::usage);
  CHECK(simulate_mttdl(code(101, device(), 100), {}).error().kind == ErrorKind::infeasible);
}
