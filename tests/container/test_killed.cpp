// A writer that is killed loses nothing that it was told is written.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "iosig/container/admin/container.h"
#include "iosig/container/admin/repair.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

/// Where write n of writer `who` goes, and how long it is: rows, then noise, so that frames, runs and records change.
struct Place {
  std::int64_t offset = 0, length = 0;
};
Place place_of(std::int64_t who, std::int64_t n) {
  if (n / 500 % 2 == 0) return {(2 * n + who) * 16, 16};
  return {(2 * n + who) * 16, 1 + (n * 7919 + who) % 16};
}
char letter_of(std::int64_t who, std::int64_t n) { return static_cast<char>('a' + (n * 31 + who) % 26); }

/// Writes until it is killed; counts what was written.
[[noreturn]] void write_on(const std::shared_ptr<const ContainerDirectory>& directory, std::int64_t who,
                           std::atomic<std::int64_t>& counted) {
  auto writer = ContainerWriter::open(directory);
  for (std::int64_t n = 0; writer; ++n) {
    const Place place = place_of(who, n);
    const std::string text(static_cast<std::size_t>(place.length), letter_of(who, n));
    if (!(*writer)->write(place.offset, std::as_bytes(std::span(text)))) break;
    counted.store(n + 1);
    if (n % 5000 == 4999 && !(*writer)->sync()) break;
  }
  ::_exit(1);
}

}  // namespace

TEST_CASE("killed: what two writers had written is there, whenever they are killed; a repair keeps it") {
  void* const shared = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* const counted = static_cast<std::atomic<std::int64_t>*>(shared);
  std::mt19937 random(11);
  std::int64_t most = 0;
  for (int round = 0; round < 24; ++round) {
    CAPTURE(round);
    const Directory directory;
    ContainerOptions options;
    options.index = round % 5 == 4 ? IndexKind::traditional : IndexKind::pattern;
    const auto container = create_container(directory / "file", options);
    REQUIRE(container);
    pid_t children[2];
    for (int who = 0; who < 2; ++who) {
      counted[who] = 0;
      children[who] = ::fork();
      if (children[who] == 0) write_on(*container, who, counted[who]);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 40000));
    for (const pid_t child : children) ::kill(child, SIGKILL);
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      CHECK(WIFSIGNALED(status));
    }
    const auto holds = [&] {
      const auto view = ContainerView::open(*container);
      REQUIRE_MESSAGE(view, view.error().message);
      for (const ContainerProblem& problem : (*view)->problems())
        CHECK_MESSAGE(problem.kind == ContainerProblem::Kind::unsynced, problem.message);
      std::string found(static_cast<std::size_t>((*view)->size()), '?');
      REQUIRE((*view)->read(0, std::as_writable_bytes(std::span(found))));
      std::int64_t missing = 0;
      for (std::int64_t who = 0; who < 2; ++who)
        for (std::int64_t n = 0; n < counted[who]; ++n) {
          const Place place = place_of(who, n);
          const std::string text(static_cast<std::size_t>(place.length), letter_of(who, n));
          if (found.compare(static_cast<std::size_t>(place.offset), text.size(), text) != 0) ++missing;
        }
      return missing == 0;
    };
    CHECK(holds());
    const auto steps = repair_container(*container);
    REQUIRE_MESSAGE(steps, steps.error().message);
    CHECK((*container)->list().tail.empty());
    CHECK(holds());
    CHECK(repair_container(*container, {.dry_run = true})->empty());
    most = std::max(most, counted[0] + counted[1]);
  }
  CHECK(most > 1000);
  ::munmap(shared, 4096);
}

namespace {

/// Writes as write_on() does, over and over in the first `range` bytes; syncs once, after `synced` writes.
[[noreturn]] void overwrite(const std::shared_ptr<const ContainerDirectory>& directory, std::int64_t range,
                            std::int64_t synced, std::int64_t count) {
  auto writer = ContainerWriter::open(directory);
  for (std::int64_t n = 0; writer && n < count; ++n) {
    const Place place = place_of(0, n);
    const std::string text(static_cast<std::size_t>(place.length), letter_of(0, n));
    if (!(*writer)->write(place.offset % range, std::as_bytes(std::span(text)))) ::_exit(1);
    if (n + 1 == synced && !(*writer)->sync()) ::_exit(1);
  }
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

}  // namespace

TEST_CASE("killed: after a power failure repair keeps the writes whose data were stored, and the synced ones always") {
  std::mt19937 random(12);
  int cut_behind_sync = 0, cut_synced = 0;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const Directory directory;
    ContainerOptions options;
    options.index = round % 3 == 2 ? IndexKind::traditional : IndexKind::pattern;
    const auto container = create_container(directory / "file", options);
    REQUIRE(container);
    const std::int64_t range = 4096, count = 1 + random() % 6000, synced = round % 4 == 3 ? 0 : random() % (count + 1);
    const pid_t child = ::fork();
    if (child == 0) overwrite(*container, range, synced, count);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    std::vector<std::int64_t> ends(1, 0);  // of the first n writes in the data dropping
    for (std::int64_t n = 0; n < count; ++n) ends.push_back(ends.back() + place_of(0, n).length);
    const auto end_of = [&](std::int64_t n) { return ends[static_cast<std::size_t>(n)]; };
    // The device stored the first `there` bytes of the data.
    const bool cuts_synced = synced > 0 && round % 8 == 0;
    const std::int64_t there =
        cuts_synced ? end_of(synced) - 1
                    : end_of(synced) + static_cast<std::int64_t>(random() % (end_of(count) - end_of(synced) + 1));
    {
      const Fd data = (*container)->open_dropping(Dropping::data, 0, O_RDWR);
      REQUIRE(::ftruncate(data.get(), there) == 0);
    }
    if (cuts_synced && round % 16 == 0) {  // the record of the sync is the only one to tell then
      const Fd tail = (*container)->open_dropping(Dropping::tail, 0, O_RDWR);
      const std::uint64_t zeros[4] = {};
      REQUIRE(::pwrite(tail.get(), zeros, sizeof zeros, 16) == sizeof zeros);
    }
    const auto read = [&]() -> std::optional<std::string> {
      const auto view = ContainerView::open(*container);
      REQUIRE_MESSAGE(view, view.error().message);
      std::string found(static_cast<std::size_t>((*view)->size()), '?');
      if (!(*view)->read(0, std::as_writable_bytes(std::span(found)))) return std::nullopt;
      return found;
    };
    const auto steps = repair_container(*container);
    REQUIRE_MESSAGE(steps, steps.error().message);
    CHECK(repair_container(*container, {.dry_run = true})->empty());
    if (cuts_synced) {
      ++cut_synced;
      const auto check = check_container(*container);
      REQUIRE(check);
      CHECK(std::ranges::any_of(check->problems, [](const ContainerProblem& problem) {
        return problem.kind == ContainerProblem::Kind::lost && problem.message.find("was cut") != std::string::npos;
      }));
      continue;
    }
    std::string expected;
    for (std::int64_t n = 0; n < count && end_of(n + 1) <= there; ++n) {
      const Place place = place_of(0, n);
      const auto at = static_cast<std::size_t>(place.offset % range), length = static_cast<std::size_t>(place.length);
      if (expected.size() < at + length) expected.resize(at + length, '\0');
      expected.replace(at, length, length, letter_of(0, n));
    }
    if (there < end_of(count)) ++cut_behind_sync;
    const auto found = read();
    REQUIRE(found);
    CHECK(*found == expected);
    const auto check = check_container(*container);
    REQUIRE(check);
    for (const ContainerProblem& problem : check->problems)
      CHECK_MESSAGE(problem.kind == ContainerProblem::Kind::unsynced, problem.message);
  }
  CHECK(cut_behind_sync > 20);
  CHECK(cut_synced > 2);
}
