// Failures of the tools of network file systems. Their usual output is in tests/data/composites.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "iosig/model/filesystem.h"
#include "support/composite_case.h"
#include "support/composition_text.h"
#include "support/recorded_machine.h"

using namespace iosig;
using test::CompositeCase;
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
/// What `gluster volume info` printed of a recorded volume.
std::string gluster_info(const std::string& volume) {
  return CompositeCase("gluster-" + volume).outputs.at(gluster_command("10.9.9.1", volume));
}

/// `part` with other names.
std::optional<Part> without_names(std::optional<Part> part) {
  if (part) part->name = part->path = "";
  if (part)
    for (Part& each : part->parts) each = *without_names(each);
  return part;
}

}  // namespace

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
  machine.says(gluster_command("10.9.9.1", "dr"), gluster_info("dr"));
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
  machine.says(gluster_command("10.9.9.1", "dr"), gluster_info("dr"));
  machine.says(gluster_command("--evil", "dr"), gluster_info("dr"));
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
    const std::string info = gluster_info(volume);
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
  CompositeCase archive("ceph-coded");
  archive.mount.options = "rw";
  const auto found = [&] { return text_of(read_cephfs(archive.mount, archive.machine.machine())); };
  CHECK(found() == "-");  // two file systems: which?
  archive.machine.says("getfattr --absolute-names --only-values -n ceph.dir.layout.pool /mnt/ceph", "archive_ec");
  CHECK(found() == "mds4+2()");
}

TEST_CASE("composite: Ceph's documents damaged anywhere never tell another code") {
  CompositeCase archive("ceph-coded");
  const auto found = [&] { return text_of(read_cephfs(archive.mount, archive.machine.machine())); };
  for (const auto& [command, document] : archive.outputs) {
    for (std::size_t length = 0; length < document.size(); ++length) {
      archive.machine.says(command, document.substr(0, length));
      const std::string code = found();
      CHECK((code == "-" || (code == "mds4+2()" && length + 2 >= document.size())));
    }
    for (const char* wrong :
         {"null", "[]", "{}", "[1]", "[[]]", "\"x\"", "[{\"pool_name\":3}]", "{\"k\":-1,\"m\":1e99}"}) {
      archive.machine.says(command, wrong);
      CHECK(found() == "-");
    }
    archive.machine.says(command, document);
  }
}

TEST_CASE(
    "composite: Lustre with more mirrors than OSTs, an unreadable number of them, or a list cut off is not told") {
  CompositeCase plain("lustre-plain");
  const auto with_layout = [&](const char* layout) {
    plain.machine.says("lfs getstripe -d /mnt/lustre", layout);
    return text_of(read_lustre(plain.mount, plain.machine.machine()));
  };
  CHECK(with_layout("  lcm_mirror_count:  9\n") == "-");
  CHECK(with_layout("  lcm_mirror_count:  x\n") == "-");
  CHECK(with_layout("stripe_count:  1\n") == plain.composition);
  plain.machine.says("lfs df /mnt/lustre", plain.outputs.at("lfs df /mnt/lustre").substr(0, 300));
  CHECK(with_layout("stripe_count:  1\n") == "-");
}

TEST_CASE(
    "composite: BeeGFS without a list of its mirrors is a replica, GPFS without one of its two flags is not told") {
  CompositeCase beegfs("beegfs-mirror"), gpfs("gpfs");
  beegfs.machine.says("beegfs-ctl --listmirrorgroups --nodetype=storage --mount=/mnt/beegfs", "");
  CHECK(text_of(read_beegfs(beegfs.mount, beegfs.machine.machine())) == "replica1+1()");
  gpfs.machine.says("mmlsfs gpfs0 -m", "");
  CHECK(text_of(read_gpfs(gpfs.mount, gpfs.machine.machine())) == "-");
}

TEST_CASE("composite: MooseFS keeps as many copies as a storage class has labels, the fewest once archived") {
  CompositeCase moosefs("moosefs");
  const std::string classes = moosefs.outputs.at("mfslistsclass -l /mnt/mfs");
  const auto with_class = [&](const std::string& answer, const std::string& more = "") {
    moosefs.machine.says("mfsgetsclass /mnt/mfs", answer);
    moosefs.machine.says("mfslistsclass -l /mnt/mfs", classes + more);
    return text_of(read_moosefs(moosefs.mount, moosefs.machine.machine()));
  };
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
    if (!is_shared_filesystem(filesystem)) continue;
    CAPTURE(filesystem);
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
