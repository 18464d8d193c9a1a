#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "iosig/storage/confidence.h"

using namespace iosig;

TEST_CASE("confidence: the factor is that of the printed tables of Student's t") {
  // Two-sided 95 %, as printed in the tables of any textbook.
  for (const auto& printed : {std::pair<std::size_t, double>{1, 12.706},
                              {2, 4.303},
                              {4, 2.776},
                              {9, 2.262},
                              {10, 2.228},
                              {11, 2.201},
                              {15, 2.131},
                              {19, 2.093},
                              {30, 2.042},
                              {120, 1.980}}) {
    CAPTURE(printed.first);
    CHECK(student_t95(printed.first) == doctest::Approx(printed.second).epsilon(1e-3));
  }
}

TEST_CASE("confidence: the interval is the mean ± t times the standard error") {
  // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5) = 0.70711; t of 4 degrees is 2.776.
  const Estimate estimate = estimate_of(std::vector<double>{1, 2, 3, 4, 5});
  CHECK(estimate.mean == 3);
  CHECK(estimate.low == doctest::Approx(3 - 1.9629).epsilon(1e-4));
  CHECK(estimate.high == doctest::Approx(3 + 1.9629).epsilon(1e-4));
  CHECK(estimate.passes == 5);
  CHECK_FALSE(estimate.settled);
}

TEST_CASE("confidence: passes end when the interval lies within 5 %, not before the fifth") {
  CHECK_FALSE(settled(std::vector<double>{}));
  CHECK_FALSE(settled(std::vector<double>{1, 1, 1, 1}));
  CHECK(settled(std::vector<double>{1, 1, 1, 1, 1}));
  // Five values 1 ± d, 1, 1 ± d have the deviation d and the interval ± 2.776 d / sqrt(5) = 1.2415 d.
  const auto of = [](double d) { return settled(std::vector<double>{1 - d, 1 + d, 1, 1 - d, 1 + d}); };
  CHECK(of(0.0402));
  CHECK_FALSE(of(0.0404));
}

TEST_CASE("confidence: one pass tells nothing of its spread, and a time is never negative") {
  const Estimate one = estimate_of(std::vector<double>{2});
  CHECK(one.low == 0);
  CHECK(one.high == 4);
  CHECK_FALSE(one.settled);
  CHECK(estimate_of(std::vector<double>{0.1, 10}).low == 0);
}

TEST_CASE("confidence: a mean of estimates counts each once, however many passes it has") {
  const std::vector<Estimate> pairs{{.mean = 1, .low = 0.7, .high = 1.3, .passes = 20, .settled = false},
                                    {.mean = 5, .low = 4.6, .high = 5.4, .passes = 5, .settled = false}};
  const Estimate all = mean_of(pairs);
  CHECK(all.mean == 3);
  CHECK(all.passes == 25);
  CHECK(all.high == doctest::Approx(3.25));  // independent: sqrt(0.3^2 + 0.4^2) / 2
  CHECK(all.low == doctest::Approx(2.75));
  CHECK_FALSE(all.settled);  // 0.25 is more than 5 % of 3
  CHECK(mean_of(std::vector<Estimate>{{.mean = 1, .low = 0.98, .high = 1.02, .passes = 20, .settled = true}}).settled);
}

TEST_CASE("confidence: 95 of 100 intervals contain the true mean") {
  std::mt19937 random(1);
  std::exponential_distribution<double> waiting(1);  // of mean 1, as skewed as the times of a disk
  int hits = 0;
  constexpr int experiments = 2000;
  for (int i = 0; i < experiments; ++i) {
    std::vector<double> passes;
    for (int pass = 0; pass < 10; ++pass) {
      double sum = 0;
      for (int operation = 0; operation < 100; ++operation) sum += waiting(random);
      passes.push_back(sum / 100);  // a pass is a mean of many operations, hence nearly normal
    }
    const Estimate estimate = estimate_of(passes);
    hits += estimate.low <= 1 && 1 <= estimate.high ? 1 : 0;
  }
  // The standard deviation of the count is sqrt(2000 * 0.95 * 0.05) = 9.7; five of them around 1900.
  CHECK(hits > 1850);
  CHECK(hits < 1950);
}
