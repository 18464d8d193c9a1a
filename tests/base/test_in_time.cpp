#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/in_time.h"

using namespace iosig;

TEST_CASE("in time: an answer comes through, and what never ends is given up") {
  CHECK(in_time([] { return 7; }) == 7);
  const auto never = in_time([] { return ::pause(); });
  REQUIRE_FALSE(never);
  CHECK(never.error() == ETIMEDOUT);
}

TEST_CASE("in time: a child that dies without an answer gives none") {
  CHECK_FALSE(in_time([]() -> int { ::_exit(1); }));
}
