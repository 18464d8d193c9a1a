#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/call_with_timeout.h"

using namespace iosig;

TEST_CASE("in time: an answer comes through, and what never ends is given up") {
  CHECK(call_with_timeout([] { return 7; }) == 7);
  const auto never = call_with_timeout([] { return ::pause(); });
  REQUIRE_FALSE(never);
  CHECK(never.error() == ETIMEDOUT);
}

TEST_CASE("in time: a child that dies without an answer gives none") {
  CHECK_FALSE(call_with_timeout([]() -> int { ::_exit(1); }));
}
