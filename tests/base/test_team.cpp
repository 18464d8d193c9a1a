#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>

#include "iosig/base/team.h"

using namespace iosig;

namespace {
const auto unwatched = [](std::uint64_t) { return true; };
}

TEST_CASE("team: nobody goes on before all have come") {
  const auto team = run_team(
      5,
      [](TeamMember& member) -> Result<void> {
        for (std::size_t round = 0; round < 3; ++round) {
          member.figure(2 * round) = steady_s();
          member.meet();
          member.figure(2 * round + 1) = steady_s();
        }
        return {};
      },
      unwatched);
  REQUIRE(team);
  REQUIRE(team->size() == 5);
  for (std::size_t round = 0; round < 3; ++round)
    for (const TeamFigures& came : *team)
      for (const TeamFigures& went : *team) CHECK(came[2 * round] <= went[2 * round + 1]);
}

TEST_CASE("team: turns come one after the other, whoever has them") {
  constexpr std::uint32_t members = 4;
  constexpr std::uint64_t turns = 3000;  // more than there are words to wait at
  const auto team = run_team(
      members,
      [](TeamMember& member) -> Result<void> {
        for (std::uint64_t turn = member.number(); turn < turns; turn += members) {
          member.wait_for_turn(turn);
          if (member.figure(0) > steady_s()) return fail(ErrorKind::system, "time went back");
          member.figure(0) = steady_s();
          member.end_turn(turn);
        }
        return {};
      },
      unwatched);
  REQUIRE(team);
  for (std::uint32_t number = 1; number < members; ++number)
    CHECK((*team)[number - 1][0] <= (*team)[number][0]);  // the last turns, in order of the members
}

TEST_CASE("team: the first failure ends all, with its words") {
  const auto team = run_team(
      3,
      [](TeamMember& member) -> Result<void> {
        if (member.number() == 1) return fail(ErrorKind::bad_input, "number {} will not", member.number());
        member.meet();  // never
        return {};
      },
      unwatched);
  REQUIRE(!team);
  CHECK(team.error().kind == ErrorKind::bad_input);
  CHECK(team.error().message == "number 1 will not");
}

TEST_CASE("team: a process that is killed is a failure with the signal") {
  const auto team = run_team(
      2,
      [](TeamMember& member) -> Result<void> {
        if (member.number() == 1) std::raise(SIGKILL);
        member.meet();
        return {};
      },
      unwatched);
  REQUIRE(!team);
  CHECK(team.error().message.find("signal 9") != std::string::npos);
}

TEST_CASE("team: the watcher sees what is done, and can end it") {
  std::uint64_t seen = 0;
  const auto team = run_team(
      2,
      [](TeamMember& member) -> Result<void> {
        member.add_done(10);
        while (member.number() < 2) member.wait_for_turn(1);  // never
        return {};
      },
      [&](std::uint64_t done) {
        seen = done;
        return done < 20;
      });
  REQUIRE(!team);
  CHECK(team.error().message == "interrupted");
  CHECK(seen == 20);
}
