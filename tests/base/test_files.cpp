// Files are replaced whole, and what cannot be read is told.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "iosig/base/files.h"
#include "support/directories.h"

using namespace iosig;

TEST_CASE("files: a replaced file is whole, keeps its mode, and leaves nothing beside it") {
  const test::Directory directory;
  REQUIRE_FALSE(directory.path().empty());
  const std::string path = directory / "a/b/file";
  REQUIRE(replace_file(path, "one"));
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  REQUIRE(replace_file(path, "two"));
  CHECK(*read_file(path) == "two");
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(std::system(("test \"$(ls -A " + directory.path() + "/a/b)\" = file").c_str()) == 0);
}

TEST_CASE(
    "files: who is told to end while a file is replaced leaves the old one or the new one, and nothing beside it") {
  const test::Directory directory;
  REQUIRE_FALSE(directory.path().empty());
  const std::string path = directory / "file";
  REQUIRE(replace_file(path, "0"));
  for (useconds_t delay_us = 0; delay_us < 4000; delay_us += 200) {
    const pid_t child = ::fork();
    if (child == 0)
      while (replace_file(path, "1")) {
      }
    ::usleep(1000 + delay_us);
    ::kill(child, SIGHUP);  // which doctest does not catch
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(read_file(path)->size() == 1);
  }
  CHECK(names_in(Fd(::open(directory.path().c_str(), O_RDONLY)))->size() == 1);
}

TEST_CASE("files: what cannot be read says why and where") {
  const test::Directory directory;
  REQUIRE_FALSE(directory.path().empty());
  CHECK(read_file(directory / "none").error().message.find("No such file") != std::string::npos);
  CHECK(read_file(directory.path()).error().message.find("not a regular file") != std::string::npos);
  CHECK_FALSE(read_file("/dev/zero"));
  REQUIRE(replace_file(directory / "big", std::string(100, 'x')));
  CHECK_FALSE(read_file(directory / "big", 99));
  CHECK(read_file(directory / "big", 100));
}
