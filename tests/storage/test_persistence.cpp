// What mounts lie on, in worlds of one text of mountinfo and a made sysfs; /tmp and /usr stand for any directories.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "iosig/storage/persistence.h"

using namespace iosig;

namespace {
namespace fs = std::filesystem;

/// The persistence of the last mount of `text`.
Persistence of_last(const std::string& text, const std::string& sysfs = "/nowhere") {
  const auto mounts = parse_mountinfo(text);
  REQUIRE_FALSE(mounts.empty());
  return backing_store_of(mounts.back(), mounts, sysfs).persistence;
}

constexpr const char* base =
    "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "2 1 0:9 / /tmp rw - tmpfs t rw\n";
}  // namespace

TEST_CASE("persistence: an overlay has that of its upper directory; one that is not visible is unknown") {
  const auto overlay = [](const std::string& upper) {
    return of_last(fmt::format("{}3 1 0:10 / /m rw - overlay o rw,lowerdir=/l,upperdir={},workdir=/w\n", base, upper));
  };
  CHECK(overlay("/usr") == Persistence::lasting);
  CHECK(overlay("/tmp") == Persistence::lost);
  CHECK(overlay("/no/such/directory") == Persistence::unknown);
  CHECK(overlay("relative") == Persistence::unknown);
}

TEST_CASE("persistence: a FUSE file system has that of its source, a union that of its worst branch") {
  const auto fuse = [](const std::string& type, const std::string& source) {
    return of_last(fmt::format("{}3 1 0:10 / /m rw - {} {} rw,user_id=0\n", base, type, source));
  };
  CHECK(fuse("fuse.bindfs", "/usr") == Persistence::lasting);
  CHECK(fuse("fuse", "/tmp") == Persistence::lost);
  CHECK(fuse("fuse.mergerfs", "/usr:/tmp") == Persistence::lost);
  CHECK(fuse("fuse.unionfs", "/usr=RW:/bin=RO") == Persistence::lasting);
  CHECK(fuse("fuse.s3fs", "bucket") == Persistence::unknown);
  CHECK(fuse("fuse", "/dev/null") == Persistence::unknown);  // libfuse's default source is a device, too
  CHECK(fuse("fuse.sshfs", "me@far:/tmp") == Persistence::lasting);
  CHECK(fuse("fuse.sshfs", "me@localhost:/tmp") == Persistence::lost);
  CHECK(fuse("nfs4", "127.0.0.1:/usr") == Persistence::lasting);
  CHECK(fuse("nfs4", "127.0.0.1:/tmp") == Persistence::lost);
  CHECK(fuse("fuse.slowdisk", "iosig-lab") == Persistence::lasting);
}

TEST_CASE("persistence: a mount over its own source is asked what it covers") {
  CHECK(of_last("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /usr rw - fuse.bindfs /usr rw\n") ==
        Persistence::lasting);
  CHECK(of_last("1 0 0:8 / / rw - tmpfs t rw\n2 1 0:9 / /usr rw - fuse.bindfs /usr rw\n") == Persistence::lost);
}

TEST_CASE("persistence: a block device is followed through slaves and loops, and lost with a deleted file") {
  const fs::path sysfs = fs::temp_directory_path() / fmt::format("iosig-test-sysfs-{}", ::getpid());
  const auto put = [&](const std::string& file, const std::string& text) {
    fs::create_directories((sysfs / file).parent_path());
    std::ofstream(sysfs / file) << text << '\n';
  };
  const auto number = [&](const std::string& device, const std::string& name) {
    fs::create_directories(sysfs / "dev/block");
    fs::create_directories(sysfs / "devices" / name);
    fs::create_symlink(sysfs / "devices" / name, sysfs / "dev/block" / device);
  };
  const auto loop = [&](const std::string& file) {
    put("devices/loop0/loop/backing_file", file);
    return of_last(std::string(base) + "3 1 7:0 / /m rw - ext4 /dev/loop0 rw\n", sysfs);
  };
  number("7:0", "loop0");
  CHECK(loop("/usr/bin/env") == Persistence::lasting);
  CHECK(loop("/tmp/not/there") == Persistence::lost);  // in another mount namespace: by its path
  CHECK(loop("/usr/image (deleted)") == Persistence::lost);

  number("253:0", "dm-0");
  fs::create_directories(sysfs / "devices/dm-0/slaves");
  fs::create_directory_symlink(sysfs / "devices/loop0", sysfs / "devices/dm-0/slaves/loop0");
  const std::string mapped = std::string(base) + "3 1 253:0 / /m rw - xfs /dev/mapper/v rw\n";
  CHECK(of_last(mapped, sysfs) == Persistence::lost);
  put("devices/loop0/loop/backing_file", "/usr/bin/env");
  CHECK(of_last(mapped, sysfs) == Persistence::lasting);
  number("252:0", "zram0");
  CHECK(of_last(std::string(base) + "3 1 252:0 / /m rw - ext4 /dev/zram0 rw\n", sysfs) == Persistence::lost);
  fs::remove_all(sysfs);
}
