#include <doctest/doctest.h>

#include <cmath>

#include "iosig/cost/markov.h"
#include "iosig/cost/reliability.h"
#include "structures.h"

using namespace iosig;

namespace {
double days(const Structure& structure) { return *chain_mttdl_s(structure) / day_s; }
}  // namespace

TEST_CASE("chain: a mirror lasts (3 lambda + mu) / (2 lambda^2)") {
  const double lambda = 1 / (10 * year_s), mu = 1 / day_s;
  CHECK(*chain_mttdl_s(code(2, device(), 1)) ==
        doctest::Approx((3 * lambda + mu) / (2 * lambda * lambda)).epsilon(1e-12));
}

TEST_CASE("chain: without redundancy the first failure counts, and with parity and hopeless repair the last but one") {
  CHECK(days(code(5, device(1000 * day_s), 0)) == doctest::Approx(200).epsilon(1e-12));
  // Nothing is rebuilt within a million lives: 1000 / 4 + 1000 / 3 + 1000 / 2 days
  CHECK(days(code(4, device(1000 * day_s), 2, 1e9 * day_s)) == doctest::Approx(250 + 1000.0 / 3 + 500).epsilon(1e-5));
}

TEST_CASE("chain: a mirror whose rebuilding meets an unreadable sector with certainty lasts until the first failure") {
  CHECK(days(code(2, device(1000 * day_s, 1e9), 1, 1e-6 * day_s)) == doctest::Approx(500).epsilon(1e-6));
}

TEST_CASE("chain: becomes Eq. 2 for MDS codes as failures and unreadable bits become rare") {
  for (const auto& both : {std::pair{1U, 1U}, {4U, 1U}, {4U, 2U}, {1U, 2U}, {8U, 3U}, {10U, 4U}}) {
    const unsigned data = both.first, parity = both.second;  // no bindings: CAPTURE is a lambda
    double last = 1;
    for (const double rarity : {1.0, 10.0, 100.0, 1000.0}) {
      const double mttf_s = rarity * 10 * year_s, unreadable = 0.01 / rarity;
      const Structure structure = code(data + parity, device(mttf_s, unreadable), parity);
      const double eq2 = mds_mttdl_s(data, parity, mttf_s, day_s, unreadable / 8, 1);
      const double off = std::abs(*chain_mttdl_s(structure) / eq2 - 1);
      CAPTURE(data);
      CAPTURE(parity);
      CHECK(off < last);
      last = off / 5;  // each ten times rarer, at least five times closer
    }
    CHECK(last * 5 < 2e-4);
  }
}

TEST_CASE("chain: one parity, by hand: (lambda_0 + lambda_1 + mu) / (lambda_0 (lambda_1 + mu p)), p = 1 - exp(-h)") {
  // 1 TB of the paper's Fig. 12: 4 h = 1.5 is no probability any more, so Eq. 2 is pessimistic
  const double lambda = 1 / (10 * year_s), mu = 1 / day_s;
  for (const int devices : {2, 5}) {
    const double first = devices * lambda, second = (devices - 1) * lambda;
    const double p = 1 - std::exp(-(devices - 1) * unreadable_of_1tb);
    CHECK(*chain_mttdl_s(code(devices, device(10 * year_s, unreadable_of_1tb), 1)) ==
          doctest::Approx((first + second + mu) / (first * (second + mu * p))).epsilon(1e-12));
  }
}

TEST_CASE("chain: the first of several equal codes to lose ends it") {
  const double pair = days(code(2, device(), 1));
  CHECK(days(code(10, code(2, device(), 1), 0)) == doctest::Approx(pair / 10).epsilon(2e-3));
  // Too many states to count them all: the sum of the rates
  const Structure sets = code(300, code(3, device(), 2), 0);
  CHECK(days(sets) == doctest::Approx(days(code(3, device(), 2)) / 300).epsilon(1e-9));
}

TEST_CASE(
    "chain: a mirror of RAID 5 outlives a RAID 5 of as many disks, and bit errors in one half are mended by the "
    "other") {
  const Structure half = code(4, device(10 * year_s, unreadable_of_1tb), 1);
  CHECK(days(code(2, half, 1)) > 1e4 * days(code(8, device(10 * year_s, unreadable_of_1tb), 1)));
  const Structure clean = code(4, device(), 1);
  CHECK(days(code(2, half, 1)) > 100 * days(half));
  CHECK(days(code(2, half, 1)) < days(code(2, clean, 1)));
}

TEST_CASE("chain: a local reconstruction code lies between the RAID 6 and the 12 + 4 of the same devices") {
  const double lrc = days(local_codes(2, 6, 2, device()));
  CHECK(lrc > days(code(14, device(), 2)));
  CHECK(lrc < days(code(16, device(), 4)));
  // With one group and no global parity it is that group.
  CHECK(days(local_codes(1, 6, 0, device())) == doctest::Approx(days(code(7, device(), 1))).epsilon(1e-12));
}

TEST_CASE("chain: parts that differ: the order of parts does not matter, and the mean lies between the extremes") {
  const Structure weak = device(year_s), strong = device(10 * year_s);
  const double mixed = days(code({weak, strong, strong}, 1));
  CHECK(days(code({strong, strong, weak}, 1)) == doctest::Approx(mixed).epsilon(1e-12));
  CHECK(mixed > days(code(3, weak, 1)));
  CHECK(mixed < days(code(3, strong, 1)));
}

TEST_CASE("chain: no digits are lost where a loss takes 1e60 times as long as a rebuilding") {
  // Eq. 2 without bit errors is exact but for terms of lambda / mu = 1e-12.
  const double mttf_s = 1e12 * day_s;
  CHECK(*chain_mttdl_s(code(10, device(mttf_s), 5)) ==
        doctest::Approx(mds_mttdl_s(5, 5, mttf_s, day_s, 0, 1)).epsilon(1e-10));
  CHECK(std::isfinite(*chain_mttdl_s(code(101, device(mttf_s), 100))));  // beyond any double
}

TEST_CASE("chain: what has too many states is refused, not computed for hours") {
  std::vector<Structure> parts;
  for (int part = 0; part < 30; ++part) parts.push_back(device((part + 1) * year_s));
  CHECK(chain_mttdl_s(code(parts, 10)).error().kind == ErrorKind::infeasible);
  // Of a few chains that must each be solved, the stripe is lost at the sum of the rates.
  const auto replicas_of = [](int count, int first) {
    std::vector<Structure> devices;
    for (int i = 0; i < count; ++i) devices.push_back(device((first + i) * day_s));
    return code(std::move(devices), static_cast<std::uint32_t>(count - 1));
  };
  const double each_s = *chain_mttdl_s(replicas_of(8, 1)), other_s = *chain_mttdl_s(replicas_of(8, 2));
  CHECK(*chain_mttdl_s(code({replicas_of(8, 1), replicas_of(8, 1), replicas_of(8, 2)}, 0)) ==
        doctest::Approx(1 / (2 / each_s + 1 / other_s)));
  std::vector<Structure> many;  // of 1025 states each: not any number of them is solved
  for (int i = 1; i <= 40; ++i) many.push_back(replicas_of(10, i));
  CHECK(chain_mttdl_s(code(many, 0)).error().kind == ErrorKind::infeasible);
  std::vector<Structure> devices;  // a chain of few states with too many steps between them
  for (int i = 1; i < 1000; ++i) devices.push_back(device(i * year_s));
  CHECK(chain_mttdl_s(code(devices, 1)).error().kind == ErrorKind::infeasible);
}
