// What sysfs says about a device, on small trees that look like sysfs.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "iosig/storage/hardware.h"
#include "support/directories.h"

using namespace iosig;
namespace fs = std::filesystem;

namespace {

/// A sysfs of its own, removed at the end.
struct Sysfs {
  Sysfs() {
    REQUIRE_FALSE(root.empty());
    fs::create_directories(root / "dev/block");
  }
  void put(const fs::path& file, std::string_view text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << '\n';
  }
  void number(const char* device, const fs::path& directory) const {
    fs::create_directory_symlink(root / directory, root / "dev/block" / device);
  }
  [[nodiscard]] Hardware inspect(unsigned major, unsigned minor, const std::vector<Mount>& mounts = {}) const {
    Mount mount;
    mount.major = major;
    mount.minor = minor;
    mount.filesystem = "ext4";
    return inspect_hardware(mount, mounts, root.string());
  }
  test::Directory temporary;
  fs::path root = temporary.path();
};

Mount unnumbered(std::string filesystem, std::string source, std::string path) {
  Mount mount;
  mount.filesystem = std::move(filesystem);
  mount.source = std::move(source);
  mount.path = std::move(path);
  return mount;
}

}  // namespace

TEST_CASE("hardware: a partition asks its disk whether it rotates") {
  const Sysfs sysfs;
  const fs::path disk = "devices/pci0000:00/ata1/host0/block/sda";
  sysfs.put(disk / "queue/rotational", "1");
  sysfs.put(disk / "sda2/partition", "2");
  sysfs.put(disk / "sda2/size", "2048");
  sysfs.number("8:2", disk / "sda2");
  const Hardware found = sysfs.inspect(8, 2);
  CHECK(found.device.name == "sda2");
  CHECK(found.device.path == "/dev/sda2");
  CHECK(found.device.kind == DeviceKind::hdd);
  CHECK(found.device.transport == "sata");
  CHECK(found.device.capacity_bytes == 1024u * 1024u);  // 2048 sectors of 512 bytes
  CHECK(found.kind_is_sure);
  CHECK(found.device.provenance.at("rotational").origin == Origin::inspected);
}

TEST_CASE("hardware: a virtual disk that claims to rotate is not believed before it is measured") {
  const Sysfs sysfs;
  const fs::path disk = "devices/pci0000:00/virtio1/block/vda";
  sysfs.put(disk / "queue/rotational", "1");
  sysfs.number("254:0", disk);
  const Hardware found = sysfs.inspect(254, 0);
  CHECK(found.device.kind == DeviceKind::hdd);  // the conservative guess
  CHECK(found.device.transport == "virtio");
  CHECK_FALSE(found.kind_is_sure);
}

TEST_CASE("hardware: a disk that does not rotate is flash, a pmem device is nvram, zram is lost with power") {
  const Sysfs sysfs;
  sysfs.put("devices/pci/nvme/nvme0/nvme0n1/queue/rotational", "0");
  sysfs.number("259:0", "devices/pci/nvme/nvme0/nvme0n1");
  sysfs.put("devices/ndbus0/block/pmem0/queue/rotational", "0");
  sysfs.number("259:1", "devices/ndbus0/block/pmem0");
  sysfs.put("devices/virtual/block/zram0/queue/rotational", "0");
  sysfs.number("252:0", "devices/virtual/block/zram0");
  CHECK(sysfs.inspect(259, 0).device.kind == DeviceKind::ssd);
  CHECK(sysfs.inspect(259, 0).device.transport == "nvme");
  CHECK(sysfs.inspect(259, 1).device.kind == DeviceKind::nvram);
  CHECK_FALSE(sysfs.inspect(259, 1).is_volatile);
  CHECK(sysfs.inspect(252, 0).is_volatile);
}

TEST_CASE("hardware: a mapped device has its mapper's name, a loop device on tmpfs is lost with power") {
  const Sysfs sysfs;
  sysfs.put("devices/virtual/block/dm-0/dm/name", "vg-home");
  sysfs.number("253:0", "devices/virtual/block/dm-0");
  sysfs.put("devices/virtual/block/loop0/loop/backing_file", "/fast/image");
  sysfs.number("7:0", "devices/virtual/block/loop0");
  CHECK(sysfs.inspect(253, 0).device.name == "vg-home");
  CHECK(sysfs.inspect(253, 0).device.path == "/dev/mapper/vg-home");
  CHECK(sysfs.inspect(7, 0, parse_mountinfo("1 0 0:9 / /fast rw - tmpfs t rw\n")).is_volatile);
  CHECK_FALSE(sysfs.inspect(7, 0, parse_mountinfo("1 0 8:9 / /fast rw - ext4 t rw\n")).is_volatile);
}

TEST_CASE("hardware: a network file system's device is its server, a tmpfs is named after its directory") {
  const auto nfs = inspect_hardware(unnumbered("nfs4", "store.example.org:/export/a", "/mnt/a"), {});
  CHECK(nfs.device.name == "store.example.org");
  CHECK(nfs.device.kind == DeviceKind::network);
  CHECK(inspect_hardware(unnumbered("nfs4", "[fe80::1]:/export", "/mnt/b"), {}).device.name == "fe80::1");
  CHECK(inspect_hardware(unnumbered("cifs", "//files/share", "/mnt/c"), {}).device.name == "files");
  const auto memory = inspect_hardware(unnumbered("tmpfs", "tmpfs", "/dev/shm"), {});
  CHECK(memory.device.name == "shm");
  CHECK(memory.device.kind == DeviceKind::ram);
  const auto overlay = inspect_hardware(unnumbered("overlay", "overlay", "/"), {});
  CHECK(overlay.device.name == "overlay");
  CHECK_FALSE(overlay.kind_is_sure);
}

TEST_CASE("hardware: an overlay on a tmpfs that can be seen is memory and lost with power") {
  // /tmp stands for any directory that exists; the texts say what it lies on.
  const auto mounts = parse_mountinfo(
      "1 0 0:9 / / rw - tmpfs t rw\n"
      "2 1 0:10 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/tmp,workdir=/w\n"
      "3 1 0:11 / /container rw - overlay overlay rw,lowerdir=/l,upperdir=/no/such/directory,workdir=/w\n");
  CHECK(inspect_hardware(mounts[1], mounts).device.kind == DeviceKind::ram);
  CHECK(inspect_hardware(mounts[1], mounts).is_volatile);
  CHECK_FALSE(inspect_hardware(mounts[2], mounts).kind_is_sure);
  CHECK_FALSE(inspect_hardware(mounts[2], mounts).is_volatile);
}
