#include <doctest/doctest.h>
#include <fmt/format.h>

#include "iosig/base/files.h"
#include "iosig/config/storage_file.h"
#include "iosig/config/system_storage.h"
#include "iosig/format/storage_toml.h"
#include "support/directories.h"

using namespace iosig;

namespace {

std::string mount(const std::string& path, const std::string& device, const std::string& more = "") {
  return fmt::format("[[mount_point]]\npath = \"{}\"\ndevice = \"{}\"\n{}", path, device, more);
}
std::string device(const std::string& name, const std::string& kind, const std::string& more = "") {
  return fmt::format("[[device]]\nname = \"{}\"\nkind = \"{}\"\n{}", name, kind, more);
}
std::string raid1(const std::string& a, const std::string& b) {
  return fmt::format("[device.redundancy]\nscheme = \"raid1\"\nmembers = [\"{}\", \"{}\"]\n", a, b);
}

Storage described(const std::string& text) {
  auto storage = parse_storage("schema = \"iosig.storage/2\"\n" + text, "storage.toml");
  REQUIRE_MESSAGE(storage.has_value(), storage.error().message);
  return *storage;
}

Storage merged(const std::string& system, const std::string& user) {
  Storage storage = described(user);
  add_system_mount_points(described(system), storage);
  // The invariants of a description that is read still hold.
  CHECK_MESSAGE(parse_storage(storage_text(storage), "merged").has_value(), storage_text(storage));
  return storage;
}

const Device& device_of(const Storage& storage, const std::string& path) {
  const MountPoint* found = storage.find_mount_point(path);
  REQUIRE(found != nullptr);
  const Device* device = storage.find_device(found->device);
  REQUIRE(device != nullptr);
  return *device;
}

/// /data with these keys, limited by the system's /data with those.
MountPoint limited(const std::string& by_system, const std::string& by_user = "", const std::string& path = "/data") {
  Storage storage = described(mount(path, "a", by_user) + device("a", "ssd"));
  apply_limits(described(mount("/data", "x", by_system) + mount("/data/free", "x") + device("x", "hdd")), storage);
  return storage.mount_points.front();
}

}  // namespace

TEST_CASE("system storage: only what the user does not describe is added, by path; the rest is the user's") {
  const Storage storage =
      merged(mount("/a//x/", "slow") + mount("/b", "fast") + device("slow", "hdd") + device("fast", "nvram"),
             mount("/a/x", "mine", "persistent = false\n") + device("mine", "ssd", "write_bandwidth = \"7GB/s\"\n"));
  REQUIRE(storage.mount_points.size() == 2);
  CHECK(storage.mount_points[0].path == "/a/x");
  CHECK_FALSE(storage.mount_points[0].persistent);
  CHECK(device_of(storage, "/a/x").name == "mine");
  CHECK(device_of(storage, "/b").kind == DeviceKind::nvram);
  CHECK(storage.devices.size() == 2);  // not that of the mount point that both have
}

TEST_CASE("system storage: devices of one name in both stay two devices, and members keep theirs") {
  const std::string system = mount("/b", "md0") + device("md0", "composite", raid1("sda", "sdb")) +
                             device("sda", "hdd", "mttf = \"3y\"\n") + device("sdb", "hdd", "mttf = \"4y\"\n");
  const Storage storage = merged(system, mount("/a", "sda") + mount("/c", "md0") + device("sda", "ssd") +
                                             device("md0", "nvram") + device("sda (system)", "ram"));
  CHECK(device_of(storage, "/a").kind == DeviceKind::ssd);
  CHECK(device_of(storage, "/c").kind == DeviceKind::nvram);
  const Device& array = device_of(storage, "/b");
  CHECK(array.name == "md0 (system)");
  CHECK(array.redundancy->members == std::vector<std::string>{"sda (system 2)", "sdb"});
  CHECK(storage.find_device("sda (system 2)")->mttf_s == described(system).find_device("sda")->mttf_s);
}

TEST_CASE("system storage: a device that is the same in both is one") {
  const Storage storage = merged(mount("/b", "sda") + device("sda", "ssd"), mount("/a", "sda") + device("sda", "ssd"));
  CHECK(storage.devices.size() == 1);
  CHECK(device_of(storage, "/b").name == "sda");
}

TEST_CASE("system storage: the policy counts where the user has none") {
  const std::string some = mount("/a", "a") + device("a", "ssd");
  CHECK(merged("policy = \"paper\"\n" + some, some).policy == Policy::paper);
  CHECK(merged("policy = \"paper\"\n" + some, "policy = \"job\"\n" + some).policy == Policy::job);
}

TEST_CASE("limits: an administrator's hold whatever the user's description says, and the stricter share counts") {
  CHECK(limited("forbidden = true\n").forbidden);
  CHECK(limited("forbidden = true\n", "forbidden = false\n").forbidden);
  CHECK(limited("forbidden = true\n").provenance.at("forbidden").origin == Origin::administrator);
  CHECK_FALSE(limited("").forbidden);
  CHECK(limited("forbidden = false\n", "forbidden = true\n").provenance.at("forbidden").origin == Origin::config);
  CHECK(limited("forbidden = false\n", "forbidden = true\n").forbidden);
  CHECK(limited("max_share = 0.5\n").max_share == 0.5);
  CHECK(limited("max_share = 0.5\n", "max_share = 0.75\n").max_share == 0.5);
  CHECK(limited("max_share = 0.5\n", "max_share = 0.25\n").max_share == 0.25);
  CHECK(limited("max_share = 0.5\n", "max_share = 0.25\n").provenance.at("max_share").origin == Origin::config);
}

TEST_CASE("limits: hold below their path under any spelling, up to the next path that the system describes") {
  for (const char* path : {"/data/mine", "/data/", "//data//mine", "/other/../data/mine", "/data/free/../mine"})
    CHECK_MESSAGE(limited("forbidden = true\n", "", path).forbidden, path);
  for (const char* path : {"/database", "/", "/data/free", "/data/free/mine", "/data/../other"})
    CHECK_MESSAGE(!limited("forbidden = true\n", "", path).forbidden, path);
}

TEST_CASE("limits: hold for a path that leads below their path, and for a limit whose own path is a link") {
  const ResolvePath links = [](const std::string& path) {
    return path == "/link/mine" ? "/data/mine" : path == "/alias" ? "/data" : path;
  };
  const auto forbids = [&](const std::string& path_of_limit, const std::string& path) {
    const Storage system = described(mount(path_of_limit, "x", "forbidden = true\n") + device("x", "hdd"));
    Storage storage = described(mount(path, "a") + device("a", "ssd"));
    apply_limits(system, storage, links);
    CHECK(storage.mount_points.front().forbidden == is_forbidden_by(system, path, links));
    return storage.mount_points.front().forbidden;
  };
  CHECK(forbids("/data", "/link/mine"));
  CHECK(forbids("/alias", "/data/mine"));
  CHECK(forbids("/alias", "/link/mine"));
  CHECK_FALSE(forbids("/link", "/link/mine"));
}

TEST_CASE("limits: max_share withholds the last part of the file system, also from free space that is set by hand") {
  const test::Directory there;
  MountPoint mount_point;
  mount_point.path = there.path();
  ask_free_space(mount_point);
  REQUIRE(mount_point.free_bytes);
  CHECK(mount_point.withheld_bytes == 0);
  mount_point.max_share = 1;
  ask_free_space(mount_point);
  CHECK(mount_point.withheld_bytes == 0);
  mount_point.max_share = 1e-6;
  ask_free_space(mount_point);
  const std::uint64_t most = *total_bytes_at(there.path()) / 1'000'000 + 1;
  CHECK(allowed_bytes(mount_point) <= most);
  mount_point.free_bytes = std::uint64_t{1} << 60;
  mount_point.provenance["free"] = {};
  ask_free_space(mount_point);
  CHECK(mount_point.free_bytes == std::uint64_t{1} << 60);
  CHECK(allowed_bytes(mount_point) <= most);
  mount_point.path = there / "missing";
  mount_point.max_share = 1;
  ask_free_space(mount_point);
  CHECK(allowed_bytes(mount_point) == 0);  // nothing is known of it
}
