#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "iosig/base/files.h"
#include "iosig/base/recent_fact.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

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
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = "/a", .directory_path = "/b"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  CHECK_FALSE(fact.is_known(here));
}

TEST_CASE("recent fact: a path of more than 256 bytes is not remembered") {
  RecentFact fact;
  const std::string longest(256, 'a'), longer(257, 'a');
  fact.keep({.device = 1, .inode = 2, .path = longer});
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = longer}));
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = longest}));
  fact.keep({.device = 1, .inode = 2, .path = "/a", .directory_path = longer});
  CHECK_FALSE(fact.is_known({.device = 1, .inode = 2, .path = "/a", .directory_path = longest}));
}

TEST_CASE("recent fact: it is not known in a child whose clock is behind") {
  RecentFact fact;
  const FactSubject here{.device = 1, .inode = 2, .path = "/a"};
  enum Answer : int { unknown, known, no_namespace };
  // The first child's own children are in the new namespace.
  const pid_t first = ::fork();
  if (first == 0) {
    const Fd offsets(::unshare(CLONE_NEWTIME) == 0 ? ::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC) : -1);
    constexpr std::string_view behind = "monotonic -10 0\n";
    if (!offsets || ::write(offsets.get(), behind.data(), behind.size()) < 0) ::_exit(no_namespace);
    fact.keep(here);
    const pid_t second = ::fork();
    if (second == 0) ::_exit(fact.is_known(here) ? known : unknown);
    int status = 0;
    ::_exit(::waitpid(second, &status, 0) == second && WIFEXITED(status) ? WEXITSTATUS(status) : no_namespace);
  }
  int status = 0;
  REQUIRE(::waitpid(first, &status, 0) == first);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == no_namespace) {
    MESSAGE("skipped: needs root and time namespaces");
    return;
  }
  CHECK(WEXITSTATUS(status) == unknown);
}
