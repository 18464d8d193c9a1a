#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>

#include "iosig/replay/worker_group.h"

using namespace iosig;

namespace {
const auto never_ended = [](std::uint64_t) { return true; };
}

TEST_CASE("workers: nobody goes on before all have come") {
  const auto workers = run_worker_group(
      5,
      [](Worker& member) -> Result<void> {
        for (std::size_t round = 0; round < 3; ++round) {
          member.figure(2 * round) = steady_s();
          member.barrier();
          member.figure(2 * round + 1) = steady_s();
        }
        return {};
      },
      never_ended);
  REQUIRE(workers);
  REQUIRE(workers->size() == 5);
  for (std::size_t round = 0; round < 3; ++round)
    for (const WorkerMetrics& came : *workers)
      for (const WorkerMetrics& went : *workers) CHECK(came[2 * round] <= went[2 * round + 1]);
}

TEST_CASE("workers: turns come one after the other, whoever has them") {
  constexpr std::uint32_t members = 4;
  constexpr std::uint64_t turns = 3000;  // more than there are words to wait at
  const auto workers = run_worker_group(
      members,
      [](Worker& member) -> Result<void> {
        for (std::uint64_t turn = member.number(); turn < turns; turn += members) {
          member.wait_for_turn(turn);
          if (member.figure(0) > steady_s()) return fail(ErrorKind::system, "time went back");
          member.figure(0) = steady_s();
          member.end_turn(turn);
        }
        return {};
      },
      never_ended);
  REQUIRE(workers);
  for (std::uint32_t number = 1; number < members; ++number)
    CHECK((*workers)[number - 1][0] <= (*workers)[number][0]);  // the last turns, in order of the members
}

TEST_CASE("workers: the first failure ends all, with its words") {
  const auto workers = run_worker_group(
      3,
      [](Worker& member) -> Result<void> {
        if (member.number() == 1) return fail(ErrorKind::bad_input, "number {} will not", member.number());
        member.barrier();  // never
        return {};
      },
      never_ended);
  REQUIRE(!workers);
  CHECK(workers.error().kind == ErrorKind::bad_input);
  CHECK(workers.error().message == "number 1 will not");
}

TEST_CASE("workers: a process that is killed is a failure with the signal") {
  const auto workers = run_worker_group(
      2,
      [](Worker& member) -> Result<void> {
        if (member.number() == 1) std::raise(SIGKILL);
        member.barrier();
        return {};
      },
      never_ended);
  REQUIRE(!workers);
  CHECK(workers.error().message.find("signal 9") != std::string::npos);
}

TEST_CASE("workers: the watcher sees what is done, and can end it") {
  std::uint64_t seen = 0;
  const auto workers = run_worker_group(
      2,
      [](Worker& member) -> Result<void> {
        member.add_done(10);
        while (member.number() < 2) member.wait_for_turn(1);  // never
        return {};
      },
      [&](std::uint64_t done) {
        seen = done;
        return done < 20;
      });
  REQUIRE(!workers);
  CHECK(workers.error().message == "interrupted");
  CHECK(seen == 20);
}
