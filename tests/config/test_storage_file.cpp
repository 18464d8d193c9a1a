#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "iosig/base/machine.h"
#include "iosig/config/storage_file.h"
#include "support/directories.h"

using namespace iosig;

namespace {

/// A configuration directory of its own, for as long as it exists.
struct World {
  test::Directory root;
  std::string iosig = root / "iosig", hosts = iosig + "/storage.d";
  World() {
    std::filesystem::create_directories(hosts);
    ::setenv("XDG_CONFIG_HOME", root.path().c_str(), 1);
    ::unsetenv("IOSIG_STORAGE");
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("IOSIG_STORAGE");
  }
  static void describe(const std::string& file, const std::string& mount_point) {
    test::write(file, fmt::format("schema = \"iosig.storage/2\"\n[[mount_point]]\npath = \"{}\"\ndevice = \"a\"\n"
                                  "[[device]]\nname = \"a\"\nkind = \"ssd\"\n",
                                  mount_point));
  }
};

StorageFile found() {
  const auto file = find_storage_file();
  REQUIRE(file);
  REQUIRE(*file);
  return **file;
}

}  // namespace

TEST_CASE("storage file: the host's own goes before a pattern's, and that before the plain one") {
  const World world;
  World::describe(world.iosig + "/storage.toml", "/plain");
  World::describe(world.hosts + "/.hidden.toml", "/hidden");
  World::describe(world.hosts + "/no-such-host.toml", "/other");
  CHECK(found().path == user_storage_file());
  CHECK(found().reason == StorageReason::user);
  World::describe(world.hosts + "/*.toml", "/all");
  CHECK(found().path == world.hosts + "/*.toml");
  CHECK(found().reason == StorageReason::hosts);
  CHECK(reason_text(found()) == "for the hosts '*'");
  World::describe(host_storage_file(host_name()), "/here");
  CHECK(found().path == host_storage_file(host_name()));
  CHECK(found().reason == StorageReason::host);
  CHECK(read_storage_file(found().path, FreeSpace::leave)->mount_points.front().path == "/here");
  ::setenv("IOSIG_STORAGE", "/named", 1);
  CHECK(found().reason == StorageReason::environment);
  CHECK((*find_storage_file("/option"))->reason == StorageReason::option);
}

TEST_CASE("storage file: without storage.d, or without a description, nothing is wrong") {
  const World world;
  CHECK_FALSE(*find_user_storage_file());
  std::filesystem::remove(world.hosts);
  CHECK_FALSE(*find_user_storage_file());
  std::filesystem::remove(world.iosig);
  test::write(world.iosig, "");  // no directory
  CHECK_FALSE(*find_user_storage_file());
}

TEST_CASE("storage file: a storage.d that is no directory is refused by name, not passed over") {
  const World world;
  World::describe(world.iosig + "/storage.toml", "/plain");
  std::filesystem::remove(world.hosts);
  test::write(world.hosts, "");
  const auto file = find_storage_file();
  REQUIRE_FALSE(file);
  CHECK(file.error().kind == ErrorKind::system);
  CHECK(file.error().message.find("'" + world.hosts + "': Not a directory") != std::string::npos);
}

TEST_CASE("storage file: that of a host is trusted no more than the plain one") {
  const World world;
  const std::string file = host_storage_file(host_name());
  World::describe(file, "/here");
  REQUIRE(::chmod(world.hosts.c_str(), 0777) == 0);
  const auto refused = read_storage_file(found().path, FreeSpace::leave);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(world.hosts) != std::string::npos);
  CHECK(is_standard_storage_file(file));
  CHECK_FALSE(is_standard_storage_file(world.root / "storage.toml"));
}
