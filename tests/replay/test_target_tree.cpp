#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "iosig/replay/made_files.h"
#include "iosig/replay/target_tree.h"
#include "iosig/replay/trace_content.h"

using iosig::contained_name;
using iosig::ContentChecker;
using iosig::TargetTree;
using iosig::WriteOrigin;
using iosig::WrongBytes;

namespace {

struct Scratch {
  std::string path = (std::filesystem::temp_directory_path() / "iosig-target-XXXXXX").string();

  Scratch() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

TEST_CASE("target tree: no name of a trace leads above the root") {
  CHECK(contained_name("/a/./b/../c") == "a/c");
  CHECK(contained_name("../../etc/passwd") == "etc/passwd");
  CHECK(contained_name("/a/../../..//b/") == "b");
  CHECK(contained_name("/..") == "");
  const std::string most(255, 'n'), more(256, 'n'), other = more + "m";
  CHECK(contained_name("/" + most) == most);
  CHECK(contained_name("/" + more).size() <= 255);
  CHECK(contained_name("/" + more) != contained_name("/" + other));
}

TEST_CASE("target tree: links are neither opened nor emptied, and what others put there stays") {
  const Scratch scratch;
  const std::string root = scratch.path + "/root";
  std::ofstream(scratch.path + "/victim") << "precious";
  auto tree = TargetTree::make(root, 10);
  REQUIRE(tree);
  CHECK(tree->make_directory("d") == 0);
  std::filesystem::create_symlink(scratch.path + "/victim", root + "/d/soft");
  std::filesystem::create_hard_link(scratch.path + "/victim", root + "/d/hard");
  std::filesystem::create_directory_symlink(scratch.path, root + "/out");
  CHECK(tree->open_file("d/soft", O_RDWR | O_TRUNC) == -ELOOP);
  CHECK(tree->open_file("d/hard", O_RDWR | O_TRUNC) == -EMLINK);
  CHECK(tree->open_file("d/hard", O_RDWR) == -EMLINK);
  CHECK(tree->open_file("out/victim", O_RDWR) == -ENOTDIR);
  CHECK(std::filesystem::file_size(scratch.path + "/victim") == 8);
  const std::vector<std::string> files{"d/mine", "d/theirs", "d/hard"}, directories{"d"};
  const int mine = tree->open_file("d/mine", O_RDWR | O_CREAT);
  REQUIRE(mine >= 0);
  ::close(mine);
  // A file at a name of the replay's that another program has made is no file of the replay's, whoever asks.
  std::ofstream(root + "/d/theirs") << "precious";
  auto again = tree->again();
  REQUIRE(again);
  for (TargetTree* each : {&*tree, &*again}) {
    CHECK(each->open_file("d/theirs", O_RDWR | O_CREAT | O_TRUNC) == -EMLINK);
    CHECK(each->truncate("d/theirs", 0) == -EMLINK);
    CHECK(each->remove_file("d/theirs") == -EMLINK);
    CHECK(each->rename("d/theirs", "d/new") == -EMLINK);
    CHECK(each->rename("d/mine", "d/theirs") == -EMLINK);
    CHECK(each->link("d/theirs", "d/new") == -EMLINK);
    const int opened = each->open_file("d/mine", O_RDWR | O_TRUNC);
    CHECK(opened >= 0);
    ::close(opened);
  }
  // The directory's name leads elsewhere: the replay stays where it was.
  std::filesystem::rename(root, root + ".moved");
  std::filesystem::create_directory(root);
  const auto third = tree->again();
  REQUIRE(third);
  CHECK(std::filesystem::is_empty(root));
  CHECK(tree->open_file("d/mine", O_RDWR) >= 0);
  std::filesystem::remove(root);
  std::filesystem::rename(root + ".moved", root);
  CHECK_FALSE(tree->remove_all(files, directories));
  CHECK_FALSE(std::filesystem::exists(root + "/d/mine"));
  CHECK(std::filesystem::exists(root + "/d/hard"));
  CHECK(std::filesystem::file_size(root + "/d/theirs") == 8);
  CHECK_FALSE(TargetTree::make(root, 10));
}

TEST_CASE("target tree: a file that another process is just making is the replay's own") {
  const Scratch scratch;
  const std::string root = scratch.path + "/root";
  auto tree = TargetTree::make(root, 10);
  REQUIRE(tree);
  auto other = tree->again();
  REQUIRE(other);
  std::ofstream(root + "/f").flush();  // made, and not added yet
  const std::jthread adding([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(other->adopt("f", 0));
  });
  const int opened = tree->open_file("f", O_RDWR | O_CREAT);
  CHECK(opened >= 0);
  if (opened >= 0) ::close(opened);
}

TEST_CASE("target tree: a directory that another process has renamed is not taken for the one that has its name now") {
  const Scratch scratch;
  const std::string root = scratch.path + "/root";
  auto tree = TargetTree::make(root, 10);
  REQUIRE(tree);
  auto other = tree->again();
  REQUIRE(other);
  CHECK(tree->make_directory("d") == 0);
  for (const char* name : {"d/before", "d/after"}) {
    const int opened = tree->open_file(name, O_RDWR | O_CREAT);
    REQUIRE(opened >= 0);
    ::close(opened);
    if (std::string(name) == "d/after") break;
    CHECK(other->rename("d", "e") == 0);
    CHECK(other->make_directory("d") == 0);
  }
  CHECK(std::filesystem::exists(root + "/e/before"));
  CHECK(std::filesystem::exists(root + "/d/after"));
}

TEST_CASE("made files: a file stays known whose number was that of a file that is forgotten after it was deleted") {
  iosig::MadeFiles made(1);
  struct stat file {};
  file.st_ino = 7;
  CHECK(made.add(file));
  CHECK(made.add(file));  // another process makes a file as soon as the first one is deleted,
  made.forget(file);      // and before that is told
  CHECK(made.has(file));
  made.forget(file);
  CHECK_FALSE(made.has(file));
}

TEST_CASE("trace content: each byte must be that of an origin, or zero") {
  const std::vector<WriteOrigin> origins{{1, 7}, {2, 7}};
  std::vector<std::byte> bytes(10000);
  iosig::fill(std::span(bytes).subspan(1000, 5001), origins[1], 51000);
  iosig::fill(std::span(bytes).subspan(6001, 3000), origins[0], 56001);
  WrongBytes wrong;
  ContentChecker checker;
  checker.check(bytes, 50000, origins, wrong);
  CHECK(wrong.count == 0);
  iosig::fill(std::span(bytes).subspan(3000, 500), {3, 7}, 53000);  // an origin that is not the file's
  checker.check(bytes, 50000, origins, wrong);
  // By chance three in 256 bytes agree.
  CHECK(wrong.count > 450);
  CHECK(wrong.first >= 53000);
  CHECK(wrong.first < 53010);
}
