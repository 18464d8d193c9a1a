// What mountinfo alone tells, on texts recorded from (and modelled on) real machines.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "iosig/storage/mountinfo.h"

using namespace iosig;

namespace {
std::vector<std::string> best_paths(std::string_view text) {
  std::vector<std::string> paths;
  for (const auto& group : destinations(parse_mountinfo(text))) paths.push_back(group.front().path);
  return paths;
}
using Paths = std::vector<std::string>;
}  // namespace

TEST_CASE("mountinfo: octal escapes become the characters they stand for, torn lines are left out") {
  const auto mounts = parse_mountinfo(
      "36 35 98:0 / /mnt/my\\040disk\\134x rw,noatime shared:1 master:2 - ext4 /dev/disk/by-label/a\\040b rw\n"
      "37 35 98:1 / /mnt/ro rw - ext4 /dev/sdb1 ro\n"
      "this is no mount\n"
      "38 35 98:2 /");
  REQUIRE(mounts.size() == 2);
  CHECK(mounts[0].path == "/mnt/my disk\\x");
  CHECK(mounts[0].source == "/dev/disk/by-label/a b");
  CHECK(mounts[0].major == 98);
  CHECK_FALSE(mounts[0].read_only);
  CHECK(mounts[1].read_only);  // the file system, though not the mount
}

TEST_CASE("mountinfo: a path lies on the topmost mount, whatever the order of the lines") {
  const auto mounts = parse_mountinfo(
      "30 25 0:27 / /dev/shm rw - tmpfs tmpfs rw\n"  // over 25
      "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
      "24 27 0:6 / /dev rw - devtmpfs devtmpfs rw\n"
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  CHECK(mount_of(mounts, "/dev/shm/file")->id == 30);
  CHECK(mount_of(mounts, "/dev/shmx")->id == 24);  // a name that merely begins alike
  CHECK(mount_of(mounts, "/home")->id == 27);
}

TEST_CASE("mountinfo: a mount on a parent directory hides what was mounted below it before") {
  const std::string_view text =
      "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "40 27 8:2 / /data rw - ext4 /dev/sda2 rw\n"
      "41 40 8:3 / /data/old rw - xfs /dev/sda3 rw\n"
      "42 40 8:4 / /data rw - xfs /dev/sda4 rw\n";  // over 40
  CHECK(mount_of(parse_mountinfo(text), "/data/old")->id == 42);
  CHECK(best_paths(text) == Paths{"/", "/data"});
}

TEST_CASE("mountinfo: a file system that is mounted several times is one destination, the whole before a part") {
  const std::string_view text =
      "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "50 27 8:2 /projects /a rw - xfs /dev/sdb1 rw\n"
      "51 27 8:2 / /mnt/everything rw - xfs /dev/sdb1 rw\n"
      "52 27 0:40 /@home /home rw - btrfs /dev/sdc rw\n"
      "53 27 0:40 /@log /var/log rw - btrfs /dev/sdc rw\n";
  CHECK(best_paths(text) == Paths{"/", "/home", "/mnt/everything"});
}

TEST_CASE("mountinfo: pseudo file systems, read-only ones, triggers and the system's directories are no destinations") {
  const std::string_view text =
      "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "22 27 0:21 / /proc rw - proc proc rw\n"
      "23 27 0:22 / /sys rw - sysfs sysfs rw\n"
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "32 27 0:29 / /run rw - tmpfs tmpfs rw\n"
      "33 32 0:30 / /run/user/1000/doc rw - fuse.portal portal rw\n"
      "34 27 8:15 / /boot/efi rw - vfat /dev/sda15 rw\n"
      "35 27 7:1 / /snap/core ro - squashfs /dev/loop1 ro\n"
      "36 27 0:31 / /net rw - autofs systemd-1 rw\n"
      "37 36 0:32 / /net/big rw - nfs4 server:/big rw\n"
      "38 27 8:17 / /media/stick ro - vfat /dev/sdb1 rw\n"
      "39 27 0:33 / /dev/shm rw - tmpfs tmpfs rw\n"
      "40 32 8:33 / /run/media/me/usb rw - exfat /dev/sdc1 rw\n"
      "41 27 0:34 / /tmp rw - tmpfs tmpfs rw\n"
      "42 27 0:35 / /far rw - fuse.sshfs me@far: rw\n";
  CHECK(best_paths(text) == Paths{"/", "/dev/shm", "/far", "/net/big", "/run/media/me/usb", "/tmp"});
}

TEST_CASE("mountinfo: a container's overlay root counts, the single files bound into it share their disk's entry") {
  const std::string_view text =
      "623 500 0:55 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n"
      "630 623 8:1 /docker/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
      "631 623 8:1 /volumes/v /data rw - ext4 /dev/sda1 rw\n"
      "632 623 0:60 / /dev rw - tmpfs tmpfs rw\n";
  const auto groups = destinations(parse_mountinfo(text));
  REQUIRE(groups.size() == 2);
  CHECK(groups[0][0].path == "/");
  CHECK(groups[1][0].path == "/data");  // the directory is tried before /etc/hosts, which discover() refuses as a file
}

TEST_CASE("mountinfo: in a chroot nothing covers the root, but what is mounted below it is found") {
  const std::string_view text = "70 61 0:44 / /proc rw - proc proc rw\n71 61 0:45 / /scratch rw - tmpfs tmpfs rw\n";
  const auto mounts = parse_mountinfo(text);
  CHECK(mount_of(mounts, "/home") == nullptr);
  CHECK(mount_of(mounts, "/scratch/x")->id == 71);
  CHECK(best_paths(text) == Paths{"/scratch"});
}

TEST_CASE("mountinfo: mounts that name each other as parents do not loop") {
  const auto mounts =
      parse_mountinfo("1 2 8:1 / /a rw - ext4 x rw\n2 1 8:2 / /a rw - ext4 y rw\n3 3 8:3 / / rw - ext4 z rw\n");
  CHECK(mount_of(mounts, "/a")->id == 3);
}

TEST_CASE("mountinfo: the thousands of mounts of a container host are all told apart") {
  std::string text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";
  for (int i = 2; i <= 3000; ++i) text += fmt::format("{0} 1 0:{0} / /m{0} rw - tmpfs none rw\n", i);
  CHECK(destinations(parse_mountinfo(text)).size() == 3000);
}

TEST_CASE("mountinfo: an option is known by its whole name, its value without escapes") {
  const auto mounts = parse_mountinfo(
      "1 0 0:9 / /a rw - nfs4 server:/x rw,vers=4.2,proto=rdma,soft,path=/a\\040b\n2 1 0:10 / /b rw - tmpfs t\n");
  REQUIRE(mounts.size() == 2);
  CHECK(option_of(mounts[0], "proto") == "rdma");
  CHECK(option_of(mounts[0], "soft") == "");
  CHECK(option_of(mounts[0], "path") == "/a b");
  CHECK_FALSE(option_of(mounts[0], "ver").has_value());
  CHECK_FALSE(option_of(mounts[1], "rw").has_value());
}

TEST_CASE("mountinfo: a mount among the system's directories is a destination when a wanted directory lies on it") {
  const auto mounts = parse_mountinfo(
      "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "32 27 0:29 / /run rw - tmpfs tmpfs rw\n"
      "33 32 0:30 / /run/user/1000 rw - tmpfs tmpfs rw\n"
      "34 32 0:31 / /run/user/1001 rw - tmpfs tmpfs rw\n");
  const auto wanted = destinations(mounts, {"/run/user/1000", "/no/such/directory"});
  REQUIRE(wanted.size() == 2);
  CHECK(wanted[1].front().path == "/run/user/1000");
}

TEST_CASE("mountinfo: a FUSE type that stands before the source is the type") {
  const auto mounts = parse_mountinfo("1 0 0:44 / /m rw - fuse mfs\\04310.9.9.1:9421 rw,user_id=0\n");  // MooseFS 3.0
  REQUIRE(mounts.size() == 1);
  CHECK(mounts[0].filesystem == "fuse.mfs");
  CHECK(mounts[0].source == "10.9.9.1:9421");
}

TEST_CASE(
    "mountinfo: iosig's own mounts, other users' FUSE mounts and services are no destinations, and it is told why") {
  const auto mounts = parse_mountinfo(
      "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "30 27 0:40 / /own rw - fuse.iosig /home/me rw,user_id=0\n"
      "31 27 0:41 / /his rw - fuse.sshfs far: rw,user_id=1001,allow_other\n"
      "32 27 0:42 / /mine rw - fuse.sshfs far: rw,user_id=1000\n"
      "33 27 0:43 / /roots rw - fuse.sshfs far: rw,user_id=0,allow_other\n"
      "34 27 0:44 / /srv/lxc rw - fuse lxcfs rw,user_id=0,allow_other\n"
      "35 27 0:45 / /srv/cg rw - cgroup2 none rw\n");
  const auto paths = [&](unsigned user) {
    Paths found;
    for (const auto& group : destinations(mounts, {}, user)) found.push_back(group.front().path);
    return found;
  };
  CHECK(paths(1000) == Paths{"/", "/mine", "/roots"});
  CHECK(paths(1001) == Paths{"/", "/his", "/roots"});
  CHECK(paths(0) == Paths{"/", "/roots"});
  CHECK(unsuitability(mounts[1], 0) == "is a mount of iosig itself, which shows '/home/me'");
  CHECK(unsuitability(mounts[2], 0).starts_with("was mounted by user 1001"));
  CHECK(unsuitability(mounts[5], 0) == "shows something else than stored files (fuse)");
  CHECK(unsuitability(mounts[6], 0) == "is an interface of the kernel (cgroup2), no storage");
  CHECK(unsuitability(mounts[4], 0).empty());
}

TEST_CASE("mountinfo: the system's tmpfs are none elsewhere either, as in a chroot; another tmpfs there is one") {
  CHECK(best_paths("27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                   "30 27 0:40 / /run rw - tmpfs run rw\n"
                   "31 27 0:40 / /srv/chroot/run rw - tmpfs run rw\n"
                   "32 27 0:41 / /srv/chroot/cg rw - tmpfs cgroups rw\n"
                   "33 32 0:42 / /srv/chroot/cg/cpu rw - cgroup none rw,cpu\n"
                   "34 27 0:43 / /srv/chroot/tmp rw - tmpfs tmp rw\n"
                   "35 34 0:44 / /srv/chroot/tmp/build/proc rw - proc proc rw\n") == Paths{"/", "/srv/chroot/tmp"});
}

TEST_CASE("mountinfo: of thousands of mounts on one directory the topmost counts, the others are hidden") {
  constexpr int count = 3000;
  std::string text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";
  for (int i = 2; i <= count; ++i) text += fmt::format("{} {} 0:{} / /a/stack rw - tmpfs tmpfs rw\n", i, i - 1, i);
  const auto mounts = parse_mountinfo(text);
  CHECK(mount_of(mounts, "/a/stack/file")->id == count);
  CHECK(mount_of(mounts, "/a/stacked")->id == 1);
  const auto groups = destinations(mounts);
  REQUIRE(groups.size() == 2);
  CHECK(groups[1].size() == 1);
  CHECK(groups[1].front().id == count);
}
