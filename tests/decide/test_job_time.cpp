// Choices by the time of the whole job.
#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/format/signature_text.h"

using namespace iosig;

namespace {

Device device_at(const std::string& name, DeviceKind kind, double bytes_per_s, double latency_s) {
  Device device = assumed_device(kind);
  device.name = name;
  device.read_bytes_per_s = device.write_bytes_per_s = bytes_per_s;
  device.operation_latency_s = latency_s;
  device.max_iops.reset();
  return device;
}

MountPoint mount_at(const std::string& path, const std::string& device, bool persistent = true) {
  MountPoint mount;
  mount.path = path;
  mount.device = device;
  mount.block_bytes = 4096;
  mount.free_bytes = TiB;
  mount.persistent = persistent;
  return mount;
}

/// /home stores 100 MB/s, 10 ms for each synchronous operation; /nvme 1 GB/s, 0.1 ms; /ram 10 GB/s, nothing.
Storage machine() {
  Storage storage;
  storage.devices = {device_at("disk", DeviceKind::ssd, 1e8, 0.01), device_at("nvme", DeviceKind::ssd, 1e9, 1e-4),
                     device_at("ram", DeviceKind::ram, 1e10, 0)};
  storage.mount_points = {mount_at("/home", "disk"), mount_at("/nvme", "nvme"), mount_at("/ram", "ram", false)};
  storage.mount_points[2].filesystem = "tmpfs";
  return storage;
}

const Circumstances at_home{.home = Home{"/home"}, .residence = Residence::home};
const Circumstances may_rest{.home = Home{"/home"}, .residence = Residence::rest};

Choice choose(const std::string& signature, const Circumstances& given = at_home, const Storage& storage = machine()) {
  return choose_mount_point(*parse_signature(signature), storage, given);
}
std::string chosen(const std::string& signature, const Circumstances& given = at_home) {
  return choose(signature, given).chosen.value_or("none");
}
Candidate candidate(const Choice& choice, const std::string& path) {
  return *std::ranges::find(choice.candidates, path, &Candidate::mount_point);
}

}  // namespace

TEST_CASE("whole job: data that are written once and must come home are written at home") {
  CHECK(chosen("size-per-IO(1GB) totalsize(1GB)") == "/home");
  // 1 GiB to /nvme and back: 1.07 s + max(1.07 s + 10.7 s, 10.7 s); at home: 10.7 s.
  const Choice choice = choose("size-per-IO(1GB) totalsize(1GB)");
  CHECK(candidate(choice, "/home").job.total_s() == doctest::Approx(GiB / 1e8 + 0.01));
  CHECK(candidate(choice, "/nvme").job.stage_out_s > 10);
  CHECK(chosen("size-per-IO(1GB) totalsize(1GB)", may_rest) == "/nvme");
}

TEST_CASE("whole job: small synchronous writes leave home, and ordinary data never go to volatile storage") {
  CHECK(chosen("size-per-IO(4KB) totalsize(100MB)") == "/nvme");
  CHECK(candidate(choose("size-per-IO(4KB) totalsize(100MB)"), "/ram")
            .reasons.front()
            .find("neither temp nor volatile") != std::string::npos);
  CHECK(chosen("size-per-IO(4KB) totalsize(100MB) volatile") == "/ram");
  CHECK(chosen("temp size-per-IO(1GB) totalsize(1GB)") == "/ram");
  CHECK(chosen("persist volatile size-per-IO(4KB) totalsize(100MB)") == "/nvme");
}

TEST_CASE("whole job: data on volatile storage come home even if they may rest, unless they are temp") {
  const Choice choice = choose("volatile rest size-per-IO(1GB) totalsize(1GB)", may_rest);
  CHECK(candidate(choice, "/ram").job.stage_out_s > 10);
  CHECK(candidate(choice, "/nvme").job.stage_out_s == 0);
  CHECK(choice.chosen == "/nvme");
  const MountPoint ram = machine().mount_points[2], nvme = machine().mount_points[1], home = machine().mount_points[0];
  const auto comes_home = [](const char* signature, const MountPoint& mount, const Circumstances& given) {
    return must_come_home(*parse_signature(signature), mount, given);
  };
  CHECK(comes_home("rest", ram, may_rest));
  CHECK_FALSE(comes_home("rest", nvme, at_home));
  CHECK(comes_home("home", nvme, may_rest));
  CHECK_FALSE(comes_home("temp", ram, at_home));
  CHECK_FALSE(comes_home("archive", nvme, at_home));
  CHECK_FALSE(comes_home("home", home, at_home));
  CHECK(with_residence(*parse_signature("rest"), ram, may_rest).residence == std::nullopt);
  CHECK(with_residence(*parse_signature(""), nvme, may_rest).residence == Residence::rest);
}

TEST_CASE("whole job: where data would have to come home, home is asked for its room, else not") {
  std::vector<std::string> asked;
  const auto chosen_with_room_at_home = [&](const std::string& signature, std::uint64_t free_bytes) {
    asked.clear();
    return choose_mount_point(*parse_signature(signature), machine(), may_rest,
                              [&](MountPoint& mount) {
                                asked.push_back(mount.path);
                                mount.free_bytes = mount.path == "/home" ? free_bytes : TiB;
                              })
        .chosen;
  };
  const std::string stream = "size-per-IO(4KB) totalsize(100MB) ";
  CHECK(chosen_with_room_at_home(stream + "volatile", TiB) == "/ram");
  CHECK(std::ranges::find(asked, "/home") != asked.end());
  CHECK(chosen_with_room_at_home(stream + "volatile", MiB) != "/ram");
  CHECK(chosen_with_room_at_home(stream + "temp", MiB) == "/ram");
  CHECK(asked == std::vector<std::string>{"/ram"});
}

TEST_CASE("whole job: home is left only for a mount point that saves the share asked for") {
  // 16 MiB at a time, at rest: 10.0 + 167.8 ms each at home. A device of 120 MB/s takes 139.8 ms: 21.4 % less.
  Storage storage = machine();
  storage.devices[1] = device_at("nvme", DeviceKind::ssd, 1.2e8, 0);
  Circumstances given = may_rest;
  const auto choose_with = [&](double gain) {
    given.min_gain = gain;
    return choose("persist size-per-IO(16MB) totalsize(1GB)", given, storage);
  };
  CHECK(choose_with(0.2).chosen == "/nvme");
  const Choice stays = choose_with(0.22);
  CHECK(stays.chosen == "/home");
  CHECK(stays.candidates.front().mount_point == "/home");
  CHECK(candidate(stays, "/nvme").reasons.back() == "saves less than 22 % of the time at home");
}

TEST_CASE("whole job: more passes, or data that need not be kept, pay for leaving home") {
  const auto signature = *parse_signature("size-per-IO(1GB) totalsize(1GB)");
  Choice choice = choose_mount_point(signature, machine(), at_home);
  explain_break_even(signature, machine(), at_home, choice);
  REQUIRE(choice.break_even.size() == 2);
  const BreakEven nvme = choice.break_even.front();
  CHECK(nvme.mount_point == "/nvme");
  REQUIRE(nvme.passes);
  CHECK(nvme.as_temp);
  const auto with_passes = [&](std::uint64_t passes) {
    return chosen(fmt::format("size-per-IO(1GB) totalsize(1GB) passes({})", passes));
  };
  CHECK(with_passes(*nvme.passes) == "/nvme");
  CHECK(with_passes(*nvme.passes - 1) == "/home");
  CHECK_FALSE(choice.break_even.back().passes);  // the data are not declared volatile
  CHECK(choice.break_even.back().as_temp);
}

TEST_CASE(
    "whole job: passes over cached data decide, and the choice says so, since the throughput is that of the first") {
  Storage storage = machine();
  Device& disk = storage.devices.front();
  disk.buffered_write_bytes_per_s = 4e9;
  disk.cached_write_bytes_per_s = 2e10;
  const std::string says = "later passes find their data in memory";
  const auto reasons = [&](const std::string& signature) {
    const auto found = candidate(choose(signature, may_rest, storage), "/home").reasons;
    return std::ranges::find(found, says) != found.end();
  };
  const std::string stream = "nosync size-per-IO(1MB) totalsize(1GB) temp";
  CHECK(reasons(stream + " passes(4)"));
  CHECK_FALSE(reasons(stream));
  disk.cached_write_bytes_per_s.reset();
  CHECK_FALSE(reasons(stream + " passes(4)"));
  CHECK_FALSE(reasons("sync size-per-IO(1MB) totalsize(1GB) passes(4)"));
}

TEST_CASE("whole job: reading needs a copy at the other place first, and leaves the data at home") {
  const Choice choice = choose("read-share(1) size-per-IO(1GB) totalsize(1GB) temp");
  CHECK(choice.chosen == "/home");
  CHECK(candidate(choice, "/ram").job.stage_in_s > 10);
  CHECK(candidate(choice, "/ram").job.stage_out_s == 0);
  CHECK(chosen("read-share(1) size-per-IO(1GB) totalsize(1GB) temp passes(5)") == "/ram");
}

TEST_CASE(
    "whole job: without a totalsize, writes that do not wait are as fast as the storage, and the choice says so") {
  Storage storage = machine();
  for (Device& device : storage.devices) device.buffered_write_bytes_per_s = 5e9;
  Circumstances given = at_home;
  given.page_cache = {.unthrottled_bytes = 4 * GiB, .background_bytes = 2 * GiB, .cached_bytes = 8 * GiB};
  const Choice choice = choose("nosync size-per-IO(1MB)", given, storage);
  CHECK(candidate(choice, "/home").job.total_s() == doctest::Approx(GiB / 1e8));
  CHECK(choice.assumptions.back() == "totalsize(1GB), beyond what the page cache holds, because none is given");
  // 1 TB to the HDD is not "as fast as memory".
  const Choice large = choose("nosync size-per-IO(1MB) totalsize(500GB)", may_rest, storage);
  CHECK(large.chosen == "/nvme");
}

TEST_CASE("whole job: data cannot be promised home to a file system that the description lacks") {
  const Circumstances unknown{.home = Home{}, .residence = Residence::home};
  CHECK(chosen("size-per-IO(4KB)", unknown) == "none");
  CHECK(candidate(choose("size-per-IO(4KB)", unknown), "/nvme").reasons.front().find("does not have the file system") !=
        std::string::npos);
  CHECK(chosen("rest size-per-IO(4KB)", unknown) == "/nvme");
  CHECK(chosen("temp size-per-IO(4KB)", unknown) == "/ram");
}

TEST_CASE("whole job: a program may ask for a path on volatile storage; it then stays there") {
  CHECK(chosen("", {.home = Home{"/ram"}, .residence = Residence::home}) == "/ram");
  CHECK(chosen("persist", {.home = Home{"/ram"}, .residence = Residence::home}) == "/nvme");
}

TEST_CASE("the paper's policy: throughput alone, also into memory, whatever comes home") {
  const Circumstances paper{.policy = Policy::paper, .home = Home{"/home"}, .residence = Residence::home};
  CHECK(chosen("size-per-IO(1GB) totalsize(1GB)", paper) == "/ram");
  CHECK(chosen("persist size-per-IO(1GB) totalsize(1GB)", paper) == "/nvme");
}

TEST_CASE("whole job: a job that is shorter than a redirect stays at home") {
  Circumstances given = may_rest;
  given.redirect_s = 0.015;
  CHECK(chosen("size-per-IO(4KB) totalsize(4KB)", given) == "/home");  // 10 ms there
  CHECK(chosen("size-per-IO(4KB) totalsize(16KB)", given) == "/nvme");
  CHECK(candidate(choose("size-per-IO(4KB)", given), "/home").job.redirect_s == 0);
}

TEST_CASE("whole job: bringing the data home costs a command, leaving them where they are does not") {
  Circumstances given = may_rest;
  given.redirect_s = 0.01;
  given.settle_s = 0.02;
  const auto redirect_s = [&](std::string_view residence) {
    return candidate(choose(std::string(residence) + " totalsize(1GB)", given), "/nvme").job.redirect_s;
  };
  CHECK(redirect_s("rest") == doctest::Approx(0.01));
  CHECK(redirect_s("temp") == doctest::Approx(0.01));
  CHECK(redirect_s("home") == doctest::Approx(0.03));
}
