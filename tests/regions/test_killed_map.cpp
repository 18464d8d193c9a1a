// A writer of the region map that is killed at any system call leaves the old content or the new one.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "iosig/base/files.h"
#include "iosig/base/units.h"
#include "iosig/regions/region_map.h"
#include "support/directories.h"

using namespace iosig;
using namespace iosig::regions;
using iosig::test::Directory;
using iosig::test::fast_directory;

namespace {

MappedPlacement map_of(std::uint64_t stripe_bytes, std::uint32_t regions) {
  MappedPlacement made{{"solver", 4, "/data/x"}, {{"hdd", {"h0", "h1"}}}, {{}}};
  for (std::uint32_t n = 0; n < regions; ++n)
    made.windows[0].push_back({n, n * MiB, MiB, {stripe_bytes}, "r" + std::to_string(n)});
  return made;
}

/// Runs `work` in a child that is killed at the entry of its system call number `calls`. Returns whether it was; if
/// not, it ended before with status 0.
template <class Work>
bool killed_at(int calls, Work work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    ::_exit(work() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (int stops = 0; WIFSTOPPED(status); ++stops) {
    if (stops == 2 * calls) ::kill(child, SIGKILL);  // a stop at the entry of each call, and one at its end
    if (::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0 && stops < 2 * calls) FAIL("cannot trace a child");
    ::waitpid(child, &status, 0);
  }
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

}  // namespace

TEST_CASE("region map: a writer killed at any system call leaves the old window or the new one") {
  const Directory directory(fast_directory());
  const MappedPlacement old = map_of(64 * KiB, 200), next = map_of(128 * KiB, 150);
  REQUIRE(store_placement(directory / "first", old));
  const std::string first = read_file(directory / "first").value();
  int olds = 0, news = 0;
  bool was_killed = true;
  for (int calls = 1; was_killed; ++calls) {
    CAPTURE(calls);
    REQUIRE(calls < 2000);
    const std::string path = directory / std::to_string(calls);
    test::write(path, first);
    was_killed = killed_at(calls, [&] { return replace_window(path, old.key, 0, next.windows[0]).has_value(); });
    const auto read = read_region_map(path);
    REQUIRE_MESSAGE(read.has_value(), read.error().message);
    REQUIRE((*read == std::vector{old} || *read == std::vector{next}));
    ++(*read == std::vector{old} ? olds : news);
    REQUIRE(store_placement(path, next));  // and it can be written again
    ::unlink(path.c_str());
  }
  CHECK(olds > 10);
  CHECK(news >= 1);
}

TEST_CASE("region map: a first writer killed at any system call leaves no map or a whole one") {
  const Directory directory(fast_directory());
  const MappedPlacement made = map_of(64 * KiB, 20);
  bool was_killed = true;
  for (int calls = 1; was_killed; ++calls) {
    CAPTURE(calls);
    REQUIRE(calls < 2000);
    const std::string path = directory / std::to_string(calls);
    was_killed = killed_at(calls, [&] { return store_placement(path, made).has_value(); });
    const auto read = read_region_map(path);
    if (read)
      CHECK(*read == std::vector{made});
    else
      CHECK((read.error().kind == ErrorKind::system ||
             read.error().message.find("holds no region map") != std::string::npos));
    REQUIRE(store_placement(path, made));
    CHECK(read_region_map(path).value() == std::vector{made});
  }
}
