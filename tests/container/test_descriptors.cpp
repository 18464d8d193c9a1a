// Containers share the process's descriptors with the program: they keep a share of the limit, close what is idle when
// others need it, and open it again.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bytes.h"
#include "iosig/base/kept_fds.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/shared/shared_container.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

/// RLIMIT_NOFILE of this process until the end of the test.
class FdLimit {
 public:
  explicit FdLimit(rlim_t fds) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = fds;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  FdLimit(const FdLimit&) = delete;
  FdLimit& operator=(const FdLimit&) = delete;
  ~FdLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// Takes all free descriptors of the process but `left`.
std::vector<Fd> take_all_but(std::size_t left) {
  std::vector<Fd> taken;
  for (;;) {
    Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    taken.push_back(std::move(fd));
  }
  REQUIRE(errno == EMFILE);
  taken.resize(taken.size() - std::min(left, taken.size()));
  return taken;
}

std::shared_ptr<SharedContainer> open(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return SharedContainer::open(directory.get(), [](const std::string& said) { MESSAGE(said); }).value();
}

std::int64_t put(SharedContainer& container, OpenWriter& writer, std::int64_t at, const std::string& text) {
  return container.writers().write(writer, at, bytes_of(text), false);
}

std::string content_of(SharedContainer& container, std::size_t bytes) {
  std::string text(bytes, '\0');
  const std::int64_t got = container.view().read(0, std::as_writable_bytes(std::span(text)));
  text.resize(static_cast<std::size_t>(std::max<std::int64_t>(got, 0)));
  return text;
}

}  // namespace

TEST_CASE("keepers together keep a quarter of the limit, and close the least recent descriptors for others") {
  const FdLimit limit(400);
  REQUIRE(max_kept_fds() == 100);
  std::size_t closed = 0;
  FdKeeper one([&] { return closed += 60, 60; }), other([] { return 0; });
  CHECK(one.may_keep(60));
  CHECK(other.may_keep(40));
  CHECK(closed == 0);
  CHECK(other.may_keep(1));  // of the 60 that `one` has closed
  CHECK(closed == 60);
  CHECK_FALSE(other.may_keep(60));  // 41 are in use, and nobody can close any
  other.closed(41);
  CHECK(other.may_keep(100));
}

TEST_CASE("a forked child has a share of its own, whatever it inherits") {
  const FdLimit limit(400);
  FdKeeper inherited([] { return 0; });
  REQUIRE(inherited.may_keep(100));
  const pid_t child = ::fork();
  if (child == 0) {
    FdKeeper own([] { return 0; });
    const bool has_share = own.may_keep(100) && !own.may_keep(1) && !inherited.may_keep(1);
    inherited.closed(60);
    const bool is_unchanged = !own.may_keep(1);
    own.closed(100);
    ::_exit(has_share && is_unchanged && own.may_keep(100) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("writers whose descriptors are closed while they are idle write on, and lose nothing") {
  const Directory directory;
  constexpr int containers = 40, rounds = 25;
  std::vector<std::shared_ptr<SharedContainer>> all;
  std::vector<OpenWriter*> writers;
  const FdLimit limit(256);  // 64 kept: those of 32 writers
  std::string wanted;
  for (int n = 0; n < containers; ++n) {
    const std::string path = directory.path() + "/" + std::to_string(n);
    REQUIRE(create_container(path));
    all.push_back(open(path));
    writers.push_back(all.back()->writers().add());
  }
  for (int round = 0; round < rounds; ++round) {
    for (int n = 0; n < containers; ++n)
      REQUIRE(put(*all[static_cast<std::size_t>(n)], *writers[static_cast<std::size_t>(n)], 3 * round, "abc") == 3);
    wanted += "abc";
    if (round == rounds / 2) CHECK(close_idle_fds() > 0);
    if (round == rounds / 2 + 1) CHECK(all[0]->writers().sync() == 0);
  }
  {  // nothing is free, but enough can be closed
    const std::vector<Fd> taken = take_all_but(2);
    for (std::size_t n = 0; n < writers.size(); ++n) CHECK(put(*all[n], *writers[n], 0, "xyz") == 3);
    wanted.replace(0, 3, "xyz");
  }
  for (std::size_t n = 0; n < writers.size(); ++n) {
    CHECK(content_of(*all[n], 1000) == wanted);
    CHECK(all[n]->writers().remove(writers[n]) == 0);
    CHECK(content_of(*open(directory.path() + "/" + std::to_string(n)), 1000) == wanted);
  }
}

TEST_CASE("a writer does not go on in a file that has replaced its dropping") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  REQUIRE(create_container(path));
  const auto container = open(path);
  OpenWriter* const writer = container->writers().add();
  REQUIRE(put(*container, *writer, 0, "before") == 6);
  REQUIRE(close_idle_fds() > 0);
  const std::string data = path + "/d0/data.0", away = path + "/away";
  REQUIRE(::rename(data.c_str(), away.c_str()) == 0);
  {
    const Fd other(::open(data.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    REQUIRE(other);
  }
  CHECK(put(*container, *writer, 6, "after") == -ESTALE);
  struct stat status {};
  CHECK(::stat(data.c_str(), &status) == 0);
  CHECK(status.st_size == 0);
  REQUIRE(::rename(away.c_str(), data.c_str()) == 0);
  CHECK(put(*container, *writer, 6, "after") == 5);
  CHECK(content_of(*container, 100) == "beforeafter");
}

TEST_CASE("a reader of more droppings than the process may have open gets all bytes") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  constexpr int droppings = 300;
  {
    const auto made = create_container(path).value();
    for (int n = 0; n < droppings; ++n) {
      const auto writer = ContainerWriter::open(made).value();
      REQUIRE(writer->write(2 * n, bytes_of(std::to_string(10 + n % 90))));
    }
  }
  std::string wanted;
  for (int n = 0; n < droppings; ++n) wanted += std::to_string(10 + n % 90);
  const FdLimit limit(128);
  const auto container = open(path);
  CHECK(content_of(*container, 1000) == wanted);
  const std::vector<Fd> taken = take_all_but(1);
  CHECK(taken.size() > 60);  // of the rest, containers have no more than a quarter
  CHECK(content_of(*container, 1000) == wanted);
}

TEST_CASE("without a descriptor to close, a call reports EMFILE") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  REQUIRE(create_container(path));
  const auto container = open(path);
  OpenWriter* const writer = container->writers().add();
  const FdLimit limit(64);
  {
    const std::vector<Fd> taken = take_all_but(0);
    CHECK(put(*container, *writer, 0, "abc") == -EMFILE);
  }
  CHECK(put(*container, *writer, 0, "abc") == 3);
}

TEST_CASE("a read that found no free descriptor shows the new write when it is repeated") {
  const Directory directory;
  const std::string path = directory.path() + "/box";
  REQUIRE(create_container(path));
  const auto writing = open(path), reading = open(path);
  OpenWriter* const writer = writing->writers().add();
  REQUIRE(put(*writing, *writer, 0, "old") == 3);
  CHECK(content_of(*reading, 10) == "old");
  REQUIRE(put(*writing, *writer, 0, "mid") == 3);
  CHECK(content_of(*reading, 10) == "mid");  // by following
  (void)close_idle_fds();
  REQUIRE(put(*writing, *writer, 0, "new") == 3);
  const FdLimit limit(64);
  {
    (void)close_idle_fds();
    const std::vector<Fd> taken = take_all_but(0);
    std::string text(3, '\0');
    CHECK(reading->view().read(0, std::as_writable_bytes(std::span(text))) == -EMFILE);
  }
  CHECK(content_of(*reading, 10) == "new");
}

TEST_CASE("threads read and write while others need their descriptors") {
  const Directory directory;
  constexpr int threads = 4, rounds = 300;
  std::vector<std::shared_ptr<SharedContainer>> all;
  for (int n = 0; n < threads; ++n) {
    const std::string path = directory.path() + "/" + std::to_string(n);
    REQUIRE(create_container(path));
    all.push_back(open(path));
  }
  std::atomic<int> wrong{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> running;
  for (int n = 0; n < threads; ++n)
    running.emplace_back([&, n] {
      SharedContainer& own = *all[static_cast<std::size_t>(n)];
      SharedContainer& next = *all[static_cast<std::size_t>((n + 1) % threads)];
      OpenWriter* writer = own.writers().add();
      for (int round = 0; round < rounds; ++round) {
        if (put(own, *writer, 4 * round, "data") != 4) ++wrong;
        std::string text(4, '\0');
        const auto bytes = std::as_writable_bytes(std::span(text));
        if (own.view().read(4 * round, bytes) != 4 || text != "data") ++wrong;
        (void)next.view().read(0, bytes);
      }
      if (own.writers().remove(writer) != 0) ++wrong;
    });
  std::thread needy([&] {
    while (!is_over) (void)close_idle_fds();
  });
  for (std::thread& each : running) each.join();
  is_over = true;
  needy.join();
  CHECK(wrong == 0);
}
