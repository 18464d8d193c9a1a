#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

using namespace iosig;

TEST_CASE("units: sizes are powers of 1024, with or without the i") {
  CHECK(*parse_bytes("16MB") == 16 * MiB);
  CHECK(*parse_bytes("16 MiB") == 16 * MiB);
  CHECK(*parse_bytes("1.5GB") == 3 * GiB / 2);
  CHECK(*parse_bytes("4096") == 4096);
  CHECK(*parse_bytes("1EB") == 1024 * 1024 * TiB);
  CHECK(*parse_bytes("0") == 0);
}

TEST_CASE("units: a size is exact up to 2^63 - 1 and refused above") {
  CHECK(*parse_bytes("9223372036854775807B") == 9223372036854775807u);
  CHECK_FALSE(parse_bytes("8EB"));
  CHECK_FALSE(parse_bytes("9223372036854775808B"));
  CHECK_FALSE(parse_bytes("99999999999999999999EB"));
  CHECK_FALSE(parse_bytes("1e400GB"));
}

TEST_CASE("units: what is no quantity is refused with what was expected") {
  for (const char* text : {"", "MB", "inf", "nan", "0x10", "16XB", "1..2MB", "-1MB", "1 2MB"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text));
  }
  CHECK(parse_bytes("-1MB").error().message.find("negative") != std::string::npos);
  CHECK(parse_bytes("16MBs").error().message.find("did you mean 'MB'") != std::string::npos);
  CHECK(parse_seconds("20").error().message.find("no unit") != std::string::npos);
  CHECK(parse_seconds("20yr").error().message.find("did you mean 'y'") != std::string::npos);
  CHECK_FALSE(parse_bytes_per_s("1.7GB"));
  CHECK_FALSE(parse_bytes_per_s("0GB/s"));
  CHECK_FALSE(parse_share("1.5"));
  CHECK_FALSE(parse_share("101%"));
}

TEST_CASE("units: a year has 365 days") {
  CHECK(*parse_seconds("20y") == 20 * 365.0 * 86400);
  CHECK(*parse_seconds("0.1ms") == doctest::Approx(1e-4));
  CHECK(*parse_seconds("2 h") == 7200);
  CHECK(*parse_share("30%") == doctest::Approx(0.3));
}

TEST_CASE("units: what is printed exactly is read back as the same number, whatever it is") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bytes = random() >> (1 + random() % 63);
    REQUIRE(*parse_bytes(bytes_text(bytes)) == bytes);
    const double positive =
        std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 80) - 40);
    REQUIRE(*parse_seconds(seconds_text(positive)) == positive);
    REQUIRE(*parse_bytes_per_s(rate_text(positive)) == positive);
  }
}

TEST_CASE("units: the exact text is the one that a person would write") {
  CHECK(bytes_text(16 * MiB) == "16MB");
  CHECK(bytes_text(1000) == "1000B");
  CHECK(bytes_text(0) == "0B");
  CHECK(seconds_text(20 * year_s) == "20y");
  CHECK(seconds_text(1e-4) == "0.1ms");
  CHECK(seconds_text(43.2e-6) == "43.2us");
  CHECK(seconds_text(1e-30) == "1e-30s");
  CHECK(seconds_text(0) == "0s");
  CHECK(seconds_text(125 * 1e-9) == "125ns");
  CHECK(seconds_text(489 * 1e-9) == "489ns");
  CHECK(rate_text(1.5 * static_cast<double>(GiB)) == "1.5GB/s");
}

TEST_CASE("units: power has a unit, and its text is read back") {
  CHECK(*parse_watts("6W") == 6);
  CHECK(*parse_watts("350 mW") == doctest::Approx(0.35));
  CHECK(*parse_watts("1.2kW") == doctest::Approx(1200));
  for (const char* text : {"6", "-1W", "6J", "W", "infW", "1e308kW"}) CHECK_FALSE_MESSAGE(parse_watts(text), text);
  for (const double watts : {0.0, 0.35, 6.0, 1200.0, 2.5e-7}) CHECK(*parse_watts(watts_text(watts)) == watts);
  CHECK(watts_text(0.35) == "0.35W");
  CHECK(watts_text(0) == "0W");
}

TEST_CASE("units: people see three digits") {
  CHECK(about_joules(0.0125) == "12.5 mJ");
  CHECK(about_joules(0) == "0 J");
  CHECK(about_watts(5.98) == "5.98 W");
  CHECK(about_rate(1.7 * static_cast<double>(GiB)) == "1.70 GB/s");
  CHECK(about_bytes(123456789) == "118 MB");
  CHECK(about_seconds(0.00123) == "1.23 ms");
  CHECK(about_seconds(0) == "0 s");
}

TEST_CASE("text: the nearest name is found for a slip and not for another word") {
  const std::vector<std::string_view> known{"random", "sequential", "size-per-IO", "temp"};
  CHECK(nearest_name("randm", known) == "random");
  CHECK(nearest_name("radnom", known) == "random");  // letters swapped
  CHECK(nearest_name("SIZE-PER-io", known) == "size-per-IO");
  CHECK(nearest_name("tmp", known) == "temp");
  CHECK(nearest_name("elephant", known).empty());
  CHECK(nearest_name(std::string(100000, 'x'), known).empty());
}
