// btrfs as sysfs shows it (Linux 6.18): its profiles, and what is wrong with it.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "support/composition_text.h"
#include "support/recorded_machine.h"

using namespace iosig;
namespace fs = std::filesystem;
using test::RecordedMachine;
using test::text_of;

namespace {

constexpr const char* uuid = "5d0f9a2c-8c5e-4c66-9f2b-4b7d1f6e2a10";

Mount mounted(std::string filesystem, std::string source) {
  Mount mount;
  mount.filesystem = std::move(filesystem);
  mount.source = std::move(source);
  mount.path = "/mnt/a";
  return mount;
}

/// btrfs, mounted on a directory "a", over whole disks xsda, xsdb, ...; `profiles` are directories of allocation/.
struct Btrfs {
  Btrfs(int disks, const std::vector<std::string>& profiles) {
    for (int i = 0; i < disks; ++i) {
      const std::string name = fmt::format("xsd{}", static_cast<char>('a' + i));
      machine.disk(name);
      machine.link(directory / "devices" / name, fs::path("class/block") / name);
      machine.put(directory / fmt::format("devinfo/{}/missing", i + 1), "0");
      machine.put(directory / fmt::format("devinfo/{}/replace_target", i + 1), "0");
    }
    for (const std::string& profile : profiles)
      machine.put(directory / "allocation" / profile / "total_bytes", "8388608");
    machine.put(directory / "allocation/data/bytes_used", "4096");
  }
  [[nodiscard]] Composed composed() const {
    return inspect_composition(mounted("btrfs", "/dev/xsda"), {}, machine.machine());
  }
  RecordedMachine machine;
  fs::path directory = fs::path("fs/btrfs") / uuid;
};

std::string btrfs(int disks, const std::vector<std::string>& profiles) {
  return text_of(Btrfs(disks, profiles).composed());
}

}  // namespace

TEST_CASE("composite: btrfs survives as many losses as its profile has further copies, whichever devices are lost") {
  CHECK(btrfs(2, {"data/raid1", "metadata/raid1", "system/raid1"}) == "raid1(xsda,xsdb)");
  CHECK(btrfs(3, {"data/raid1", "metadata/raid1", "system/raid1"}) == "mds2+1(xsda,xsdb,xsdc)");  // not 3 copies
  CHECK(btrfs(4, {"data/raid10", "metadata/raid10", "system/raid10"}) == "mds3+1(xsda,xsdb,xsdc,xsdd)");
  CHECK(btrfs(3, {"data/raid1c3", "metadata/raid1c3", "system/raid1c3"}) == "raid1(xsda,xsdb,xsdc)");
  CHECK(btrfs(5, {"data/raid1c4", "metadata/raid1c4", "system/raid1c4"}) == "mds2+3(xsda,xsdb,xsdc,xsdd,xsde)");
  CHECK(btrfs(3, {"data/raid5", "metadata/raid1", "system/raid1"}) == "mds2+1(xsda,xsdb,xsdc)");
  CHECK(btrfs(4, {"data/raid6", "metadata/raid1c3", "system/raid1c3"}) == "mds2+2(xsda,xsdb,xsdc,xsdd)");
}

TEST_CASE("composite: btrfs is no safer than the weakest of its data, metadata and system chunks") {
  CHECK(btrfs(4, {"data/raid6", "metadata/raid1", "system/raid1"}) == "mds3+1(xsda,xsdb,xsdc,xsdd)");
  CHECK(btrfs(2, {"data/single", "metadata/raid1", "system/raid1"}) == "stripe(xsda,xsdb)");
  CHECK(btrfs(2, {"data/raid1", "metadata/dup", "system/dup"}) == "stripe(xsda,xsdb)");
  CHECK(btrfs(2, {"data/raid1", "data/single", "metadata/raid1"}) == "stripe(xsda,xsdb)");  // half converted
  CHECK(btrfs(1, {"data/single", "metadata/dup", "system/dup"}) == "a");                    // as simple as its device
}

TEST_CASE("composite: a btrfs of an unknown profile, without a device, or that replaces one is not told") {
  const std::vector<std::string> raid1{"data/raid1", "metadata/raid1", "system/raid1"};
  CHECK(btrfs(2, {"data/raid99", "metadata/raid1"}) == "a");
  CHECK(btrfs(2, {}) == "a");
  for (const char* flag : {"missing", "replace_target"}) {
    Btrfs damaged(2, raid1);
    damaged.machine.put(damaged.directory / "devinfo/2" / flag, "1");
    CHECK_FALSE(damaged.composed().whole.device.redundancy.has_value());
  }
  const Composed whole = Btrfs(2, raid1).composed();
  CHECK(whole.whole.device.name == "btrfs-5d0f9a2c");  // not that of one of its members
  CHECK(whole.whole.device.path == std::string("/dev/disk/by-uuid/") + uuid);
  CHECK_FALSE(whole.whole.device.capacity_bytes.has_value());
}
