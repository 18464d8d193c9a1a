// Service time from timed chunks, with times computed by hand.
#include <doctest/doctest.h>

#include <vector>

#include "iosig/storage/fit.h"

using iosig::fit_service_time;
using iosig::TimedSize;

TEST_CASE("fit: exact times give back the latency and the bandwidth that made them") {
  // 1 ms + bytes / 100 MB/s
  const std::vector<TimedSize> points{{1'000'000, 0.011}, {4'000'000, 0.041}, {16'000'000, 0.161}};
  const auto fitted = fit_service_time(points);
  REQUIRE(fitted);
  CHECK(fitted->latency_s == doctest::Approx(0.001));
  CHECK(fitted->bytes_per_s == doctest::Approx(1e8));
}

TEST_CASE("fit: one size that went wrong does not bend the line") {
  const std::vector<TimedSize> points{{1'000'000, 0.011}, {2'000'000, 0.5}, {4'000'000, 0.041}, {16'000'000, 0.161}};
  CHECK(fit_service_time(points)->bytes_per_s == doctest::Approx(1e8));
}

TEST_CASE("fit: times that do not grow with size still give a positive bandwidth") {
  const std::vector<TimedSize> points{{1000, 0.004}, {1'000'000, 0.004}};
  CHECK(fit_service_time(points)->latency_s == doctest::Approx(0.004));
  CHECK(fit_service_time(points)->bytes_per_s == doctest::Approx(2.5e8));  // 1 MB in 4 ms
}

TEST_CASE("fit: one size alone shows no line") {
  CHECK_FALSE(fit_service_time(std::vector<TimedSize>{{4096, 0.001}}).has_value());
}
