#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "iosig/base/recent_fact.h"

using namespace iosig;

TEST_CASE("recent fact: it is known for a tenth of a second, of one directory and one path") {
  RecentFact fact;
  const FactSubject here{.device = 1, .inode = 2, .path = "/a"};
  CHECK_FALSE(fact.is_known(here));
  const auto since = std::chrono::steady_clock::now();
  fact.keep(here);
  const bool at_once = fact.is_known(here);
  if (std::chrono::steady_clock::now() - since < std::chrono::milliseconds(50)) CHECK(at_once);  // not held up
  CHECK_FALSE(fact.is_known({.device = 2, .inode = 2, .path = "/a"}));
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 3, .path = "/a"}));
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = "/b"}));
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = "/"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  CHECK_FALSE(fact.is_known(here));
}

TEST_CASE("recent fact: a path of more than 256 bytes is not remembered") {
  RecentFact fact;
  const std::string longest(256, 'a'), longer(257, 'a');
  fact.keep({.device = 1, .inode = 2, .path = longer});
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = longer}));
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = longest}));
}
