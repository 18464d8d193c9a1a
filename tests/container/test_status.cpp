// SharedContainer's status: chmod and chown reach every piece that has a mode of its own; times are those of the
// writes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "iosig/container/admin/container.h"
#include "iosig/container/order/sequencer.h"
#include "iosig/container/shared/shared_container.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

struct stat status_of_file(const std::string& path) {
  struct stat status {};
  CHECK_MESSAGE(::lstat(path.c_str(), &status) == 0, path);
  return status;
}

}  // namespace

TEST_CASE("status: a mode and an owner reach the sequencer, the pieces and what lies on targets") {
  const Directory directory;
  const std::string path = directory / "file", target = directory / "target";
  REQUIRE(::mkdir(target.c_str(), 0755) == 0);
  ContainerOptions options;
  options.targets = {target};
  const auto made = create_container(path, options);
  REQUIRE(made);
  const Fd opened(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto container = SharedContainer::open(opened.get(), [](const std::string& said) { FAIL_CHECK(said); });
  REQUIRE(container);
  OpenWriter* const writer = (*container)->writers().add();
  const std::string text = "text";
  std::int64_t at = 0;
  REQUIRE((*container)->writers().write(*writer, at, std::as_bytes(std::span(text)), false) == 4);

  const std::string on_target = target + "/" + (*made)->manifest().id;
  const std::string pieces[] = {path + "/" + sequencer_name(), path + "/d0/index.0", path + "/d0/tail.0",
                                on_target + "/d0/data.0"};
  const auto mode_of = [](const std::string& name) { return status_of_file(name).st_mode & 07777; };
  for (const unsigned mode : {0640u, 0666u, 0444u}) {
    CHECK((*container)->set_mode(mode) == 0);
    for (const std::string& piece : pieces) CHECK_MESSAGE(mode_of(piece) == (mode | 0600), piece);
    CHECK(mode_of(path + "/.iosig-container") == mode);
  }
  CHECK((*container)->set_mode(0755) == 0);
  CHECK(mode_of(pieces[0]) == 0644);  // a table is not run
  CHECK(mode_of(on_target) == 0700);

  if (::geteuid() == 0) {
    CHECK((*container)->set_owner(12345, 23456) == 0);
    const auto is_given = [](const std::string& name) {
      const struct stat status = status_of_file(name);
      return status.st_uid == 12345 && status.st_gid == 23456;
    };
    for (const std::string& piece : pieces) CHECK_MESSAGE(is_given(piece), piece);
    for (const std::string& piece : {path, path + "/.iosig-container", on_target, on_target + "/.iosig-container"})
      CHECK_MESSAGE(is_given(piece), piece);
  }
  CHECK((*container)->writers().remove(writer) == 0);
}

TEST_CASE("status: a write has the time at which it was written, however late somebody asks") {
  const Directory directory;
  const std::string path = directory.path() + "/file";
  REQUIRE(create_container(path));
  const Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto container =
      SharedContainer::open(fd.get(), [](const std::string& message) { FAIL_CHECK(message); }).value();
  OpenWriter *const first = container->writers().add(), *const second = container->writers().add();
  struct stat status {};
  for (OpenWriter* each : {first, second}) REQUIRE(container->writers().prepare(*each) == 0);
  REQUIRE(container->status().get(status, 60) == 0);  // what follows is told without a look at the droppings
  const auto blocks_before = status.st_blocks;
  const auto put = [&](OpenWriter* by, int id, time_t when) {
    std::int64_t offset = 0;
    const std::byte bytes[600]{};
    REQUIRE(container->writers().write(*by, offset, bytes, false) == sizeof bytes);
    const timespec times[2] = {{when, 0}, {when, 0}};
    const std::string dropping = path + "/d" + std::to_string(id) + "/data." + std::to_string(id);
    REQUIRE(::utimensat(AT_FDCWD, dropping.c_str(), times, 0) == 0);
  };
  put(first, 0, 1000);
  REQUIRE(container->status().get(status, 60) == 0);
  CHECK(status.st_mtim.tv_sec == 1000);
  CHECK(status.st_blocks == blocks_before + 2);
  put(second, 1, 2000);
  put(first, 0, 3000);
  CHECK(container->writers().remove(first) == 0);
  REQUIRE(container->status().get(status, 60) == 0);
  CHECK(status.st_mtim.tv_sec == 3000);
  put(second, 1, 4000);
  REQUIRE(container->truncate(second, 10) == 0);  // now
  REQUIRE(container->status().get(status, 60) == 0);
  CHECK(status.st_mtim.tv_sec > 4000);
  CHECK(status.st_size == 10);
  CHECK(container->writers().remove(second) == 0);
}
