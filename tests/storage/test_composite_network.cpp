// Network file systems, as their tools print them: tests/data/composites/README.md.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "iosig/model/filesystem.h"
#include "support/composition_text.h"
#include "support/recorded_machine.h"

using namespace iosig;
using test::recorded;
using test::RecordedMachine;
using test::text_of;

namespace {

Mount mounted(std::string filesystem, std::string source, std::string path, std::string options = "rw") {
  Mount mount;
  mount.filesystem = std::move(filesystem);
  mount.source = std::move(source);
  mount.path = std::move(path);
  mount.options = std::move(options);
  return mount;
}

std::string gluster_command(const std::string& server, const std::string& volume) {
  return fmt::format("gluster --mode=script --log-file=/dev/null --remote-host={} volume info {}", server, volume);
}

std::optional<Part> gluster(RecordedMachine& machine, const std::string& volume, const std::string& info) {
  machine.says(gluster_command("10.9.9.1", volume), info);
  return read_glusterfs(mounted("fuse.glusterfs", "10.9.9.1:/" + volume, "/mnt/g"), machine.machine());
}
std::string gluster(const std::string& volume) {
  RecordedMachine machine;
  return text_of(gluster(machine, volume, recorded("gluster-volume-info-" + volume + ".txt")));
}

/// `part` with other names.
std::optional<Part> without_names(std::optional<Part> part) {
  if (part) part->name = part->path = "";
  if (part)
    for (Part& each : part->parts) each = *without_names(each);
  return part;
}

RecordedMachine& with_ceph(RecordedMachine& machine) {
  const std::string common = " --connect-timeout 2 --format json";
  machine.says("ceph fs ls" + common, recorded("ceph-fs-ls.json"));
  machine.says("ceph osd pool ls detail" + common, recorded("ceph-osd-pool-ls-detail.json"));
  machine.says("ceph osd erasure-code-profile get ec42" + common, recorded("ceph-erasure-code-profile.json"));
  return machine;
}

const Mount lustre = mounted("lustre", "10.0.0.1@tcp:10.0.0.2@tcp:/lustre", "/mnt/lustre");
const Mount beegfs = mounted("beegfs", "beegfs_nodev", "/mnt/beegfs");

}  // namespace

TEST_CASE("composite: a Gluster volume is its replica or disperse sets, striped; an arbiter holds no data") {
  CHECK(gluster("dist") == "stripe(10.9.9.1:/bricks/d1,10.9.9.1:/bricks/d2)");
  CHECK(gluster("dr") ==
        "stripe(replica(10.9.9.1:/bricks/r1,10.9.9.1:/bricks/r2,10.9.9.1:/bricks/r3),"
        "replica(10.9.9.1:/bricks/r4,10.9.9.1:/bricks/r5,10.9.9.1:/bricks/r6))");
  CHECK(gluster("arb") == "replica(10.9.9.1:/bricks/a1,10.9.9.1:/bricks/a2)");
  CHECK(gluster("disp") ==
        "mds4+2(10.9.9.1:/bricks/e1,10.9.9.1:/bricks/e2,10.9.9.1:/bricks/e3,10.9.9.1:/bricks/e4,"
        "10.9.9.1:/bricks/e5,10.9.9.1:/bricks/e6)");
}

TEST_CASE("composite: a Gluster volume of thousands of bricks, in any order of their lines, is read") {
  constexpr int count = 10'000;
  std::string info = fmt::format("Volume Name: big\nType: Distribute\nNumber of Bricks: {}\n", count);
  for (int i = count; i > 0; --i) info += fmt::format("Brick{0}: 10.9.9.1:/bricks/{0}\n", i);
  RecordedMachine machine;
  const auto whole = gluster(machine, "big", info);
  REQUIRE(whole.has_value());
  REQUIRE(whole->parts.size() == count);
  CHECK(whole->parts.front().path == "10.9.9.1:/bricks/1");
  CHECK(whole->parts.back().path == "10.9.9.1:/bricks/10000");
}

TEST_CASE("composite: what is nested comes as devices of their own, to be completed by hand") {
  RecordedMachine machine;
  machine.says(gluster_command("10.9.9.1", "dr"), recorded("gluster-volume-info-dr.txt"));
  const Composed found = inspect_composition(mounted("fuse.glusterfs", "10.9.9.1:dr", "/mnt/g"), {}, machine.machine());
  CHECK(found.whole.device.name == "dr");
  CHECK(found.whole.device.kind == DeviceKind::composite);
  CHECK(found.whole.device.redundancy->members == std::vector<std::string>{"dr-0", "dr-1"});
  REQUIRE(found.members.size() == 8);
  CHECK(found.members[0].name == "dr-0");
  CHECK(found.members[1].kind == DeviceKind::network);
  CHECK(found.members[1].path == "10.9.9.1:/bricks/r1");
}

TEST_CASE("composite: a FUSE file system of another user says nothing, and no name becomes an option of a tool") {
  RecordedMachine machine;
  machine.says(gluster_command("10.9.9.1", "dr"), recorded("gluster-volume-info-dr.txt"));
  machine.says(gluster_command("--evil", "dr"), recorded("gluster-volume-info-dr.txt"));
  const auto found = [&](const char* source, const char* options) {
    return inspect_composition(mounted("fuse.glusterfs", source, "/mnt/g", options), {}, machine.machine())
        .whole.device.redundancy.has_value();
  };
  CHECK(found("10.9.9.1:/dr", "rw,user_id=0,group_id=0"));
  CHECK_FALSE(found("10.9.9.1:/dr", "rw,user_id=4294967294,group_id=0"));
  CHECK_FALSE(found("--evil:/dr", "rw"));
}

TEST_CASE("composite: Gluster's text damaged anywhere tells the same sets or nothing") {
  RecordedMachine machine;
  for (const char* volume : {"dist", "dr", "arb", "disp"}) {
    const std::string info = recorded(fmt::format("gluster-volume-info-{}.txt", volume));
    const auto sets = without_names(gluster(machine, volume, info));
    REQUIRE(sets.has_value());
    test::for_each_damage(info.substr(0, info.find("Options Reconfigured:")), [&](const std::string& damaged) {
      CAPTURE(damaged);
      const auto found = without_names(gluster(machine, volume, damaged));
      CHECK((!found || found == sets));
    });
  }
}

TEST_CASE("composite: CephFS has the code of the pool that its directory's layout or its only data pool names") {
  RecordedMachine machine;
  with_ceph(machine);
  const auto ceph = [&](const char* source, const char* options = "rw") {
    return text_of(read_cephfs(mounted("ceph", source, "/mnt/ceph", options), machine.machine()));
  };
  CHECK(ceph("admin@b3acfc0d-575f-41d3-9c91-0e7ed3dbb3fa.cephfs=/") == "replica1+2()");
  CHECK(ceph("10.0.0.1:6789:/", "rw,name=admin,mds_namespace=archive") == "mds4+2()");
  CHECK(ceph("10.0.0.1:6789:/") == "-");  // two file systems: which?
  machine.says("getfattr --absolute-names --only-values -n ceph.dir.layout.pool /mnt/ceph", "archive_ec");
  CHECK(ceph("10.0.0.1:6789:/") == "mds4+2()");
}

TEST_CASE("composite: Ceph's documents damaged anywhere never tell another code") {
  for (const char* name : {"fs ls", "osd pool ls detail", "osd erasure-code-profile get ec42"}) {
    RecordedMachine machine;
    with_ceph(machine);
    const std::string command = fmt::format("ceph {} --connect-timeout 2 --format json", name);
    const std::string document = *machine.machine().run({"ceph", name, "--connect-timeout", "2", "--format", "json"});
    const Mount mount = mounted("ceph", "10.0.0.1:6789:/", "/mnt/ceph", "rw,fs=archive");
    for (std::size_t length = 0; length + 1 < document.size(); ++length) {
      machine.says(command, document.substr(0, length));
      const std::string found = text_of(read_cephfs(mount, machine.machine()));
      CHECK((found == "-" || (found == "mds4+2()" && length + 2 >= document.size())));
    }
    for (const char* wrong :
         {"null", "[]", "{}", "[1]", "[[]]", "\"x\"", "[{\"pool_name\":3}]", "{\"k\":-1,\"m\":1e99}"}) {
      machine.says(command, wrong);
      CHECK(text_of(read_cephfs(mount, machine.machine())) == "-");
    }
  }
}

TEST_CASE("composite: Lustre stripes over its active OSTs, or those of the default pool; mirrors are counted") {
  RecordedMachine machine;
  machine.says("lfs df /mnt/lustre", recorded("lfs-df.txt"));
  machine.says("lfs pool_list lustre.flash", recorded("lfs-pool-list.txt"));
  const auto with_layout = [&](const std::string& layout) {
    machine.says("lfs getstripe -d /mnt/lustre", layout);
    return text_of(read_lustre(lustre, machine.machine()));
  };
  CHECK(with_layout(recorded("lfs-getstripe-plain.txt")) == "stripe(lustre-OST0000,lustre-OST0001,lustre-OST0003)");
  CHECK(with_layout(recorded("lfs-getstripe-pool.txt")) == "stripe(lustre-OST0001,lustre-OST0003)");
  CHECK(with_layout(recorded("lfs-getstripe-mirrored.txt")) == "mds2+1(lustre-OST0000,lustre-OST0001,lustre-OST0003)");
  CHECK(with_layout("  lcm_mirror_count:  9\n") == "-");  // more copies than OSTs
  CHECK(with_layout("  lcm_mirror_count:  x\n") == "-");
  machine.says("lfs df /mnt/lustre", recorded("lfs-df.txt").substr(0, 300));
  CHECK(with_layout(recorded("lfs-getstripe-plain.txt")) == "-");
}

TEST_CASE("composite: BeeGFS stripes over targets or over buddies") {
  RecordedMachine machine;
  const auto with_entry = [&](const char* file) {
    machine.says("beegfs-ctl --getentryinfo /mnt/beegfs", recorded(file));
    return text_of(read_beegfs(beegfs, machine.machine()));
  };
  CHECK(with_entry("beegfs-entryinfo-raid0.txt") == "-");
  CHECK(with_entry("beegfs-entryinfo-mirror.txt") == "replica1+1()");
  machine.says("beegfs-ctl --listtargets --nodetype=storage --mount=/mnt/beegfs", recorded("beegfs-listtargets.txt"));
  machine.says("beegfs-ctl --listmirrorgroups --nodetype=storage --mount=/mnt/beegfs",
               recorded("beegfs-listmirrorgroups.txt"));
  const auto target = [](int id) { return fmt::format("beegfs/mnt/beegfs-target-{}", id); };
  CHECK(with_entry("beegfs-entryinfo-raid0.txt") ==
        fmt::format("stripe({},{},{})", target(101), target(102), target(201)));
  CHECK(with_entry("beegfs-entryinfo-mirror.txt") ==
        fmt::format("stripe(replica({},{}),replica({},{}))", target(101), target(201), target(202), target(102)));
}

TEST_CASE("composite: GPFS has the fewer of its copies of data and metadata, OrangeFS none") {
  RecordedMachine machine;
  const Mount gpfs = mounted("gpfs", "/dev/gpfs0", "/gpfs");
  CHECK(text_of(read_gpfs(gpfs, machine.machine())) == "-");
  machine.says("mmlsfs gpfs0 -r", recorded("mmlsfs-r.txt"));
  CHECK(text_of(read_gpfs(gpfs, machine.machine())) == "-");
  machine.says("mmlsfs gpfs0 -m", recorded("mmlsfs-m.txt"));
  CHECK(text_of(read_gpfs(gpfs, machine.machine())) == "replica1+1()");
  machine.says("pvfs2-statfs -m /mnt/pvfs", recorded("pvfs2-statfs.txt"));
  CHECK(text_of(read_orangefs(mounted("pvfs2", "tcp://node1:3334/orangefs", "/mnt/pvfs"), machine.machine())) ==
        "stripe(tcp://node2:3334,tcp://node3:3334)");
}

TEST_CASE(
    "composite: MooseFS keeps as many copies as the directory's storage class has labels, the fewest once archived") {
  RecordedMachine machine;
  const auto with_class = [&](const std::string& answer, const std::string& more = "") {
    machine.says("mfsgetsclass /mnt/mfs", answer);
    machine.says("mfslistsclass -l /mnt/mfs", recorded("mfslistsclass.txt") + more);
    return text_of(read_moosefs(mounted("fuse.mfs", "mfsmaster:9421", "/mnt/mfs"), machine.machine()));
  };
  CHECK(with_class("/mnt/mfs: 3\n") == "replica1+2()");
  CHECK(with_class("/mnt/mfs: 'two'\n") == "replica1+1()");
  CHECK(with_class("/mnt/mfs: 'old'\n", "old : 3 ; keep_labels: [A] , [A] , [A] ; archive_labels: [B] , [B]\n") ==
        "replica1+1()");
  for (const char* answer : {"/mnt/mfs: 1\n", "/mnt/mfs: 3", "/mnt/mfs: 33\n", "/mnt/mfs: 'none'\n", "/mnt/mfs:\n", ""})
    CHECK(with_class(answer) == "-");
}

TEST_CASE("composite: without any tool, network file systems are their server, reached as the options say") {
  RecordedMachine machine;
  for (const auto& reader : mount_readers) {
    const std::string filesystem(reader.first);
    if (filesystem == "btrfs") continue;  // it is asked without a tool
    CAPTURE(filesystem);
    CHECK(is_shared_filesystem(filesystem) == (filesystem != "zfs"));
    const Composed found = inspect_composition(mounted(filesystem, "a@tcp:/b", "/mnt/x"), {}, machine.machine());
    CHECK_FALSE(found.whole.device.redundancy.has_value());
    CHECK(found.members.empty());
  }
  const auto nfs = inspect_composition(mounted("nfs4", "server:/export", "/mnt/n", "rw,vers=4.2,proto=rdma,addr=::1"),
                                       {}, machine.machine());
  CHECK(nfs.whole.device.name == "server");
  CHECK(nfs.whole.device.transport == "rdma");
  CHECK(nfs.whole.device.path == "server:/export");
}
