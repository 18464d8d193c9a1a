// md, device-mapper and bcache, on sysfs trees and tables as the kernel's documentation shows them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "support/composition_text.h"
#include "support/recorded_machine.h"

using namespace iosig;
namespace fs = std::filesystem;
using test::RecordedMachine;
using test::text_of;

namespace {

/// What carries a file system on the block device `name`.
Composed carrier(const RecordedMachine& recorded, const std::string& name) {
  Mount mount;
  mount.major = 8;
  mount.minor = static_cast<unsigned>(std::stoul(recorded.number(name).substr(2)));
  mount.filesystem = "ext4";
  return inspect_composition(mount, {}, recorded.machine());
}
std::string carrier_text(const RecordedMachine& recorded, const std::string& name) {
  return text_of(carrier(recorded, name));
}

/// Four disks sda .. sdd with two partitions each.
RecordedMachine& with_disks(RecordedMachine& recorded) {
  for (const char* disk : {"sda", "sdb", "sdc", "sdd"}) recorded.disk(disk, 2);
  return recorded;
}

}  // namespace

TEST_CASE("composite: md's levels are codes over the disks of its partitions, in the order of their slots") {
  RecordedMachine recorded;
  with_disks(recorded);
  const std::vector<std::string> four{"sdd1", "sda1", "sdb1", "sdc1"};
  recorded.md("md0", "raid1", {"sdb1", "sda1"});
  recorded.md("md1", "raid5", four);
  recorded.md("md2", "raid6", four);
  recorded.md("md3", "raid0", four);
  recorded.put(recorded.md("md4", "raid10", four) / "md/layout", "258");  // near=2: pairs in order
  recorded.put(recorded.md("md5", "raid10", four) / "md/layout", "513");  // far=2: copies on the next disk
  recorded.put(recorded.md("md6", "raid10", {"sda1", "sdb1", "sdc1"}) / "md/layout", "258");  // near=2, odd
  recorded.md("md7", "linear", {"sda1", "sda2", "sdb1"});
  recorded.md("md8", "raid5", {"sda1", "sdb1"});  // a mirror
  CHECK(carrier_text(recorded, "md0") == "raid1(sdb,sda)");
  CHECK(carrier_text(recorded, "md1") == "raid5(sdd,sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md2") == "raid6(sdd,sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md3") == "stripe(sdd,sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md4") == "raid10(sdd,sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md5") == "mds3+1(sdd,sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md6") == "mds2+1(sda,sdb,sdc)");
  CHECK(carrier_text(recorded, "md7") == "stripe(sda,sdb)");
  CHECK(carrier_text(recorded, "md8") == "raid1(sda,sdb)");

  const Composed found = carrier(recorded, "md0");
  CHECK(found.whole.device.name == "md0");
  CHECK(found.whole.device.kind == DeviceKind::composite);
  CHECK(found.whole.kind_is_sure);
  CHECK(found.whole.device.path == "/dev/md0");
  CHECK(found.whole.device.transport == "md");
  CHECK(found.whole.device.provenance.at("redundancy").origin == Origin::inspected);
  REQUIRE(found.members.size() == 2);
  CHECK(found.members[0].path == "/dev/sdb");
  CHECK(found.members[0].kind == DeviceKind::ssd);
}

TEST_CASE("composite: copies that share a disk protect nothing, and an array without all of its disks is not told") {
  RecordedMachine recorded;
  with_disks(recorded);
  recorded.md("md0", "raid1", {"sda1", "sda2"});
  recorded.md("md1", "raid5", {"sda1", "sdb1", "sdb2"});
  const fs::path degraded = recorded.md("md2", "raid1", {"sda1", "sdb1"});
  recorded.put(degraded / "md/degraded", "1");
  const fs::path rebuilt = recorded.md("md3", "raid1", {"sda1", "sdb1"});
  recorded.put(rebuilt / "md/dev-sdb1/state", "spare");
  const fs::path torn = recorded.md("md4", "raid6", {"sda1", "sdb1", "sdc1", "sdd1"});
  fs::remove(recorded.sysfs() / torn / "md/rd3");
  recorded.put(recorded.md("md5", "raid1", {"sda1", "sdb1"}) / "md/raid_disks", "99999999999999999999");
  recorded.md("md6", "container", {"sda1", "sdb1"});
  for (const char* name : {"md0", "md1", "md2", "md3", "md4", "md5", "md6"}) {
    CAPTURE(name);
    CHECK(carrier_text(recorded, name) == name);
    CHECK(carrier(recorded, name).whole.device.kind != DeviceKind::composite);
    CHECK(carrier(recorded, name).members.empty());
  }
}

TEST_CASE("composite: a layer over one device is as redundant as that, a volume over two arrays is a stripe of them") {
  RecordedMachine recorded;
  with_disks(recorded);
  recorded.md("md0", "raid1", {"sda1", "sdb1"});
  recorded.md("md1", "raid1", {"sdc1", "sdd1"});
  recorded.mapped("dm-0", "secret", "0 1000 crypt aes-xts-plain64 :64:logon:key 0 {md0} 32768\n");
  recorded.mapped("dm-1", "vg-home", "0 600 linear {md0} 2048\n600 400 linear {md1} 2048\n");
  recorded.mapped("dm-2", "vg-swap", "0 1000 linear {sda2} 2048\n");
  recorded.mapped("dm-3", "vg-scratch", "0 1000 striped 2 128 {sda2} 384 {sdb2} 384\n");
  recorded.mapped("dm-4", "on-secret", "0 1000 linear {dm-0} 0\n");
  CHECK(carrier_text(recorded, "dm-0") == "raid1(sda,sdb)");
  CHECK(carrier(recorded, "dm-0").whole.device.name == "secret");
  CHECK(carrier(recorded, "dm-0").whole.device.path == "/dev/mapper/secret");
  CHECK(carrier_text(recorded, "dm-1") == "stripe(raid1(sda,sdb),raid1(sdc,sdd))");
  CHECK(carrier_text(recorded, "dm-2") == "vg-swap");
  CHECK(carrier_text(recorded, "dm-3") == "stripe(sda,sdb)");
  CHECK(carrier_text(recorded, "dm-4") == "raid1(sda,sdb)");
}

TEST_CASE("composite: LVM's raid volumes are told by dmsetup, with their health") {
  RecordedMachine recorded;
  with_disks(recorded);
  for (int i = 0; i < 4; ++i) {
    const std::string disk(1, static_cast<char>('a' + i));
    recorded.mapped(fmt::format("dm-{}", 2 * i), "vg-lv_rmeta", "0 1000 linear {sd" + disk + "1} 2048\n");
    recorded.mapped(fmt::format("dm-{}", 2 * i + 1), "vg-lv_rimage", "0 1000 linear {sd" + disk + "1} 10240\n");
  }
  const std::string two = "2 {dm-0} {dm-1} {dm-2} {dm-3}",
                    four = "4 {dm-0} {dm-1} {dm-2} {dm-3} {dm-4} {dm-5} {dm-6} {dm-7}";
  const auto status = [](const char* type, const char* health) {
    return fmt::format("0 1000 raid {} {} {} 1000/1000 idle 0 0 -\n", type, std::strlen(health), health);
  };
  recorded.mapped("dm-10", "vg-r1", "0 1000 raid raid1 3 0 region_size 1024 " + two + "\n", status("raid1", "AA"));
  recorded.mapped("dm-11", "vg-r5", "0 1000 raid raid5_ls 3 128 region_size 1024 " + four + "\n",
                  status("raid5_ls", "AAAA"));
  recorded.mapped("dm-12", "vg-r6", "0 1000 raid raid6_zr 3 128 region_size 1024 " + four + "\n",
                  status("raid6_zr", "aaaa"));
  recorded.mapped("dm-13", "vg-r10", "0 1000 raid raid10 3 128 raid10_copies 2 " + four + "\n",
                  status("raid10", "AAAA"));
  recorded.mapped("dm-14", "vg-far", "0 1000 raid raid10 5 128 raid10_copies 2 raid10_format far " + four + "\n",
                  status("raid10", "AAAA"));
  recorded.mapped("dm-15", "vg-lost", "0 1000 raid raid1 3 0 region_size 1024 " + two + "\n", status("raid1", "AD"));
  recorded.mapped("dm-16", "vg-rebuilt", "0 1000 raid raid1 3 0 region_size 1024 " + two + "\n", status("raid1", "Aa"));
  recorded.mapped("dm-17", "vg-gone", "0 1000 raid raid1 3 0 region_size 1024 2 {dm-0} {dm-1} - -\n",
                  status("raid1", "AD"));
  recorded.mapped("dm-18", "vg-old", "0 1000 mirror disk 2 {dm-0} 1024 2 {dm-1} 0 {dm-3} 0\n");
  CHECK(carrier_text(recorded, "dm-10") == "raid1(sda,sdb)");
  CHECK(carrier_text(recorded, "dm-11") == "raid5(sda,sdb,sdc,sdd)");
  CHECK(carrier_text(recorded, "dm-12") == "raid6(sda,sdb,sdc,sdd)");
  CHECK(carrier_text(recorded, "dm-13") == "raid10(sda,sdb,sdc,sdd)");
  CHECK(carrier_text(recorded, "dm-14") == "mds3+1(sda,sdb,sdc,sdd)");
  CHECK(carrier_text(recorded, "dm-15") == "vg-lost");
  CHECK(carrier_text(recorded, "dm-16") == "vg-rebuilt");
  CHECK(carrier_text(recorded, "dm-17") == "vg-gone");
  CHECK(carrier_text(recorded, "dm-18") == "raid1(sda,sdb)");
}

TEST_CASE("composite: thin volumes need their pool's two devices, caches count when they hold what nobody else has") {
  RecordedMachine recorded;
  with_disks(recorded);
  recorded.mapped("dm-0", "vg-meta", "0 1000 linear {sda1} 0\n");
  recorded.mapped("dm-1", "vg-data", "0 1000 linear {sdb1} 0\n");
  recorded.mapped("dm-2", "vg-pool", "0 1000 thin-pool {dm-0} {dm-1} 128 0 0\n");
  recorded.mapped("dm-3", "vg-thin", "0 1000 thin {dm-2} 1\n");
  recorded.mapped("dm-4", "vg-back", "0 1000 cache {dm-0} {sdc1} {sdd1} 128 1 writeback smq 0\n");
  recorded.mapped("dm-5", "vg-through", "0 1000 cache {dm-0} {sdc1} {sdd1} 128 2 metadata2 writethrough smq 0\n");
  recorded.mapped("dm-6", "mpatha", "0 1000 multipath 0 0 1 1 service-time 0 2 2 {sda} 1 1 {sdb} 1 1\n");
  CHECK(carrier_text(recorded, "dm-3") == "stripe(sdb,sda)");
  CHECK(carrier_text(recorded, "dm-4") == "stripe(sdd,sdc,sda)");
  CHECK(carrier_text(recorded, "dm-5") == "vg-through");
  CHECK(carrier_text(recorded, "dm-6") == "mpatha");  // one disk on two ways
}

TEST_CASE("composite: without dmsetup a mapped device is told only if it lies on one device") {
  RecordedMachine recorded;
  with_disks(recorded);
  recorded.md("md0", "raid1", {"sda1", "sdb1"});
  const auto mapped = [&](const char* name, std::vector<std::string> slaves, const char* uuid) {
    const fs::path directory = recorded.block(name);
    recorded.put(directory / "dm/name", std::string("map-") + name);
    recorded.put(directory / "dm/uuid", uuid);
    for (const std::string& slave : slaves)
      recorded.link(directory / "slaves" / slave, fs::path("class/block") / slave);
  };
  mapped("dm-0", {"md0"}, "CRYPT-LUKS2-1234");
  mapped("dm-1", {"sda2", "sdb2"}, "LVM-1234");
  mapped("dm-2", {"md0"}, "mpath-1234");
  CHECK(carrier_text(recorded, "dm-0") == "raid1(sda,sdb)");
  CHECK(carrier_text(recorded, "dm-1") == "map-dm-1");
  CHECK(carrier_text(recorded, "dm-2") == "map-dm-2");
}

TEST_CASE("composite: bcache is its backing device, and its cache too when that writes back") {
  RecordedMachine recorded;
  with_disks(recorded);
  recorded.md("md0", "raid1", {"sda1", "sdb1"});
  const auto bcache = [&](const char* name, const char* backing, const char* cache, const char* mode) {
    const fs::path directory = recorded.block(name);
    recorded.put(directory / "bcache/cache_mode", mode);
    recorded.put(fs::path("class/block") / backing / "bcache/cache_mode", mode);
    for (const char* slave : {backing, cache})
      recorded.link(directory / "slaves" / slave, fs::path("class/block") / slave);
  };
  bcache("bcache0", "md0", "sdc1", "writethrough [writeback] writearound none");
  bcache("bcache1", "sdd1", "sdc1", "[writethrough] writeback writearound none");
  CHECK(carrier_text(recorded, "bcache0") == "stripe(raid1(sda,sdb),sdc)");
  CHECK(carrier_text(recorded, "bcache1") == "bcache1");
}

TEST_CASE("composite: layers in a circle end") {
  RecordedMachine recorded;
  recorded.disk("sda", 1);
  const fs::path first = recorded.md("md0", "raid1", {"sda1"});
  recorded.md("md1", "raid1", {"md0", "sda1"});
  recorded.put(first / "md/raid_disks", "2");
  recorded.put(first / "md/dev-md1/state", "in_sync");
  recorded.link(first / "md/dev-md1/block", "class/block/md1");
  recorded.link(first / "md/rd1", first / "md/dev-md1");
  CHECK(carrier(recorded, "md0").members.size() <= 8);  // whatever it finds
  recorded.mapped("dm-0", "itself", "");
  recorded.says("dmsetup table -j 8 -m " + recorded.number("dm-0").substr(2),
                fmt::format("0 1000 linear {} 0\n", recorded.number("dm-0")));
  CHECK(carrier_text(recorded, "dm-0") == "itself");
}

TEST_CASE("composite: what lies deeper than a description can hold is one device") {
  for (const int levels : {7, 8}) {  // of arrays, above the disks
    RecordedMachine recorded;
    std::string below = "sda";
    recorded.disk(below);
    for (int i = 0; i < levels; ++i) {
      recorded.disk(fmt::format("other{}", i));
      recorded.md(fmt::format("md{}", i), "raid1", {below, fmt::format("other{}", i)});
      below = fmt::format("md{}", i);
    }
    CAPTURE(levels);
    const Composed found = carrier(recorded, below);
    const auto lowest = std::ranges::find(found.members, "md0", &Device::name);
    REQUIRE(lowest != found.members.end());
    CHECK(lowest->redundancy.has_value() == (levels == 7));
  }
}

TEST_CASE("composite: whatever is wrong with a table, it never tells more redundancy than there is") {
  RecordedMachine recorded;
  with_disks(recorded);
  const std::string table = fmt::format("0 1000 raid raid5_ls 3 128 region_size 1024 3 - {} - {} - {}\n",
                                        recorded.number("sda"), recorded.number("sdb"), recorded.number("sdc"));
  const std::string status = "0 1000 raid raid5_ls 3 AAA 1000/1000 idle 0 0 -\n";
  recorded.mapped("dm-0", "vg-lv", table, status);
  REQUIRE(carrier_text(recorded, "dm-0") == "raid5(sda,sdb,sdc)");
  const std::string words = "-j 8 -m " + recorded.number("dm-0").substr(2);
  test::for_each_damage(table, [&](const std::string& damaged) {
    recorded.says("dmsetup table " + words, damaged);
    const Composed found = carrier(recorded, "dm-0");
    if (!found.whole.device.redundancy) return;
    const auto code = code_of(*found.whole.device.redundancy);
    REQUIRE(code.has_value());
    CHECK(code->parity <= 1);
    CHECK(found.whole.device.redundancy->members.size() == 3);
  });
}
