#include <doctest/doctest.h>

#include <filesystem>

#include "iosig/config/resolve_links.h"
#include "support/directories.h"

using namespace iosig;
namespace fs = std::filesystem;

TEST_CASE("links: a path leads where the kernel says, by absolute, relative, nested and dangling links") {
  const test::Directory made;
  const fs::path root = fs::canonical(made.path());
  fs::create_directories(root / "data" / "deep");
  fs::create_symlink(root / "data", root / "absolute");
  fs::create_symlink("data/deep", root / "relative");
  fs::create_symlink("../absolute", root / "data" / "back");
  fs::create_symlink("missing/place", root / "dangling");
  for (const char* path : {"absolute", "relative", "data/back/deep", "absolute/back/../data/./deep//", "relative/.."}) {
    CAPTURE(path);
    CHECK(resolve_links((root / path).string(), {}) ==
          fs::path(fs::canonical(root / path).string()).lexically_normal().string());
  }
  CHECK(resolve_links((root / "dangling/more").string(), {}) == (root / "missing/place/more").string());
  CHECK(resolve_links("/", {}) == "/");
  CHECK(resolve_links("/../..", {}) == "/");
}

TEST_CASE("links: on a mount that may not answer nothing is followed, and a loop of links ends") {
  const test::Directory made;
  const fs::path root = fs::canonical(made.path());
  fs::create_directories(root / "server" / "real");
  fs::create_symlink("real", root / "server" / "link");
  fs::create_symlink(root / "server", root / "outside");
  fs::create_symlink("loop", root / "loop");
  const std::set<std::string> blocking{(root / "server").string()};
  CHECK(resolve_links((root / "outside/link/x").string(), blocking) == (root / "server/link/x").string());
  CHECK(resolve_links((root / "outside/link/x").string(), {}) == (root / "server/real/x").string());
  CHECK(resolve_links((root / "loop/x").string(), {}) == (root / "loop/x").string());
}

TEST_CASE("links: network and FUSE file systems may block, others not") {
  const auto blocking = blocking_mounts(
      "22 1 254:0 / / rw - ext4 /dev/root rw\n"
      "30 22 0:40 / /mnt/my\\040nfs rw shared:3 master:4 - nfs4 server:/export rw\n"
      "31 22 0:41 / /mnt/ssh rw,nosuid - fuse.sshfs host: rw\n"
      "32 22 0:42 / /dev/shm rw - tmpfs tmpfs rw\n"
      "broken line\n33 22 0:43 / /x rw -\n");
  CHECK(blocking == std::set<std::string>{"/mnt/my nfs", "/mnt/ssh"});
}
