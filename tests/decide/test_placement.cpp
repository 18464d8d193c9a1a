#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/format/signature_text.h"

using namespace iosig;

namespace {

/// These tests are of the constraints and of the throughput; test_job_time.cpp has the time of the whole job.
const Circumstances by_throughput{.policy = Policy::paper};

/// Two simple mounts: /fast is volatile, local and small; /slow is persistent, global and large.
Storage two_mounts() {
  Storage storage;
  for (const bool fast : {true, false}) {
    Device device = assumed_device(fast ? DeviceKind::ram : DeviceKind::network);
    device.name = fast ? "ram" : "net";
    storage.devices.push_back(device);
    MountPoint mount;
    mount.path = fast ? "/fast" : "/slow";
    mount.device = device.name;
    mount.block_bytes = 4096;
    mount.free_bytes = fast ? 10 * GiB : TiB;
    mount.persistent = !fast;
    mount.visibility = fast ? Visibility::local : Visibility::global;
    storage.mount_points.push_back(mount);
  }
  return storage;
}

std::string place_of(const std::string& signature, const Storage& storage = two_mounts()) {
  return choose_mount_point(*parse_signature(signature), storage, by_throughput).chosen.value_or("none");
}

std::string reasons(const std::string& signature, const std::string& mount, const Storage& storage = two_mounts()) {
  const Choice choice = choose_mount_point(*parse_signature(signature), storage, by_throughput);
  const auto it = std::ranges::find(choice.candidates, mount, &Candidate::mount_point);
  return fmt::format("{}", fmt::join(it->reasons, "; "));
}

}  // namespace

TEST_CASE("placement: each constraint excludes what fails it, with the numbers") {
  CHECK(place_of("") == "/fast");
  CHECK(place_of("global") == "/slow");
  CHECK(place_of("persist") == "/slow");
  CHECK(reasons("global persist", "/fast") == "not global: only this node sees it; not persistent: lost with power");
  CHECK(place_of("archive") == "none");
  CHECK(place_of("tamperproof") == "none");
  CHECK(reasons("MTTDL(1h)", "/slow").find("without redundancy") != std::string::npos);
}

TEST_CASE("placement: the fast mount point wins only while the stream fits on it") {
  CHECK(place_of("totalsize(10GB)") == "/fast");
  CHECK(place_of("totalsize(10737418241B)") == "/slow");
  CHECK(reasons("totalsize(11GB)", "/fast") == "no room: totalsize 11GB, free 10 GB");
  CHECK(place_of("totalsize(2TB)") == "none");
}

TEST_CASE("placement: a forbidden mount point is no choice, except for a file that the program has there anyway") {
  Storage storage = two_mounts();
  storage.mount_points[0].forbidden = true;
  CHECK(place_of("", storage) == "/slow");
  CHECK(reasons("", "/fast", storage) == "forbidden by the storage description");
  storage.mount_points[0].provenance["forbidden"].origin = Origin::administrator;
  CHECK(reasons("", "/fast", storage) == "forbidden by the administrator");
  const Circumstances at_home{.policy = Policy::paper, .home = Home{"/fast"}};
  CHECK(choose_mount_point(*parse_signature(""), storage, at_home).chosen == "/fast");
  storage.mount_points[1].forbidden = true;
  CHECK(place_of("", storage) == "none");
}

TEST_CASE("placement: what max_share withholds is no room, except at home") {
  Storage storage = two_mounts();
  storage.mount_points[0].max_share = 0.5;
  storage.mount_points[0].withheld_bytes = 4 * GiB;
  CHECK(place_of("totalsize(6GB)", storage) == "/fast");
  CHECK(place_of("totalsize(7GB)", storage) == "/slow");
  CHECK(reasons("totalsize(7GB)", "/fast", storage) ==
        "no room: totalsize 7GB, free 10 GB, 4 GB of them withheld (max_share 0.5)");
  const Circumstances at_home{.policy = Policy::paper, .home = Home{"/fast"}};
  CHECK(choose_mount_point(*parse_signature("totalsize(10GB)"), storage, at_home).chosen == "/fast");
  storage.mount_points[0].withheld_bytes = 10 * GiB;
  CHECK(reasons("", "/fast", storage) == "no room: free 10 GB, 10 GB of them withheld (max_share 0.5)");
}

TEST_CASE("placement: a mount point that cannot be asked or whose files are too small is no choice") {
  Storage storage = two_mounts();
  storage.mount_points[0].free_bytes.reset();
  CHECK(place_of("", storage) == "/slow");
  storage.mount_points[1].max_file_bytes = 4 * GiB - 1;
  CHECK(place_of("totalsize(4GB)", storage) == "none");
  CHECK(place_of("totalsize(4095MB)", storage) == "/slow");
}

TEST_CASE("placement: a tie goes to the earlier mount point") {
  Storage storage = two_mounts();
  storage.mount_points[1].device = "ram";
  CHECK(place_of("", storage) == "/fast");
  std::swap(storage.mount_points[0], storage.mount_points[1]);
  CHECK(place_of("", storage) == "/slow");
}

TEST_CASE("placement: of equal page caches the one before the faster storage wins") {
  Storage storage = two_mounts();
  std::ranges::reverse(storage.mount_points);
  for (Device& device : storage.devices) device.buffered_write_bytes_per_s = 1e9;
  CHECK(place_of("nosync", storage) == "/fast");
}

TEST_CASE("placement: every mount point is explained, the best first") {
  const Choice choice = choose_mount_point(*parse_signature("persist"), two_mounts(), by_throughput);
  REQUIRE(choice.candidates.size() == 2);
  CHECK(choice.candidates[0].mount_point == "/slow");
  CHECK(choice.candidates[0].reasons.size() == 1);
  CHECK_FALSE(choice.candidates[1].admissible);
  CHECK(choice.candidates[1].throughput_bytes_per_s > 0);  // what is missed is still said
  CHECK(choice.assumptions.size() == 2);
}

TEST_CASE("placement: availability is judged by the MTTDL and the duration") {
  Storage storage = two_mounts();
  Device& net = storage.devices[1];
  net.redundancy = Redundancy{.scheme = RedundancyScheme::raid1, .data = 1, .parity = 1, .members = {}};
  net.mttf_s = 1000 * 86400.0;  // mirror: 1000^2 / 2 days = 500000 days
  net.mttr_s = 86400;
  CHECK(place_of("MTTDL(1369y)", storage) == "/slow");  // 500000 d = 1369.86 y
  CHECK(place_of("MTTDL(1370y)", storage) == "none");
  CHECK(place_of("availability(2.001e-6) duration(1d)", storage) == "/slow");
  CHECK(place_of("availability(1.999e-6) duration(1d)", storage) == "none");
  CHECK(place_of("availability(7.301e-4)", storage) ==
        "/slow");  // a year is assumed: 365 / 500000, and the law bends it
  CHECK(place_of("availability(7.296e-4)", storage) == "none");
}

TEST_CASE("placement: read share decides between devices of unlike asymmetry") {
  Storage storage = two_mounts();
  storage.devices[0].read_bytes_per_s = static_cast<double>(MiB);
  CHECK(place_of("read-share(0)", storage) == "/fast");
  CHECK(place_of("read-share(1)", storage) == "/slow");
}

TEST_CASE("placement: a page cache hides the slow storage behind it, but not from those who wait") {
  Storage storage = two_mounts();
  storage.devices[1].buffered_write_bytes_per_s = 1e12;
  CHECK(place_of("nosync", storage) == "/slow");
  CHECK(place_of("sync", storage) == "/fast");
  CHECK(place_of("", storage) == "/fast");
  const auto assumed = [&](const char* text) {
    return choose_mount_point(*parse_signature(text), storage, by_throughput).assumptions.size();
  };
  CHECK(assumed("") == 3);
  CHECK(assumed("nosync") == 2);
  CHECK(reasons("nosync size-per-IO(1MB)", "/slow", storage) == "limited by bandwidth: 931 GB/s");
}

TEST_CASE("placement: what does not fit twice into an ext4 is not left to the page cache") {
  Storage storage = two_mounts();
  storage.devices[1].buffered_write_bytes_per_s = 1e12;
  storage.mount_points[1].filesystem = "ext4";
  CHECK(place_of("nosync totalsize(500GB)", storage) == "/slow");
  CHECK(reasons("nosync totalsize(600GB)", "/slow", storage).ends_with("half of what is free to the page cache"));
  const auto speed = [&](const char* text) {
    return choose_mount_point(*parse_signature(text), storage, by_throughput).candidates.front().throughput_bytes_per_s;
  };
  CHECK(speed("nosync totalsize(600GB)") == speed("sync totalsize(600GB)"));
  storage.mount_points[1].filesystem = "btrfs";
  CHECK(speed("nosync totalsize(600GB)") == speed("nosync totalsize(500GB)"));
}

TEST_CASE("free space is asked of the mount points that may win, and of no other") {
  std::vector<std::string> asked;
  const auto chosen_asking = [&](const std::string& signature, std::uint64_t free_bytes) {
    asked.clear();
    return choose_mount_point(*parse_signature(signature), two_mounts(), by_throughput,
                              [&](MountPoint& mount) {
                                asked.push_back(mount.path);
                                if (mount.path == "/fast") mount.free_bytes = free_bytes;
                              })
        .chosen;
  };
  CHECK(chosen_asking("totalsize(1GB)", 2 * GiB) == "/fast");
  CHECK(asked == std::vector<std::string>{"/fast"});
  CHECK(chosen_asking("totalsize(1GB)", MiB) == "/slow");
  CHECK(asked == std::vector<std::string>{"/fast", "/slow"});
  CHECK(chosen_asking("persist", GiB) == "/slow");
  CHECK(asked == std::vector<std::string>{"/slow"});
  CHECK_FALSE(chosen_asking("totalsize(2TB)", MiB));
}

TEST_CASE("free space is asked of as many mount points as are wanted") {
  std::vector<std::string> asked;
  const auto ask = [&](MountPoint& mount) { asked.push_back(mount.path); };
  (void)choose_mount_point(*parse_signature("totalsize(1GB)"), two_mounts(), by_throughput, ask, 2);
  CHECK(asked == std::vector<std::string>{"/fast", "/slow"});
}
