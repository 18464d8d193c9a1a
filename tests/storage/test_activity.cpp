#include <doctest/doctest.h>

#include <filesystem>

#include "iosig/base/files.h"
#include "iosig/storage/activity.h"
#include "support/directories.h"

using namespace iosig;

namespace {

/// The kernel's counters after `busy` and `idle` ticks of each of two processors, `disk_ms` of the disk 8:0 and
/// `stalled_us` of waiting.
ActivityCounters counters(double at_s, int busy, int idle, int disk_ms, int stalled_us) {
  const std::string line = fmt::format("{} 0 0 {} 7 0 0 0 0 0\n", busy, idle);
  ActivityCounters made = parse_counters(
      "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 " + line + "cpu1 " + line + "intr 5\n",
      fmt::format("   8       0 sda 1 2 3 4 5 6 7 8 0 {} 11 1 2 3 4 5 6\n   8       1 sda1 9 9 9 9 9 9 9 9 0 9 9\n",
                  disk_ms),
      fmt::format("some avg10=0.00 avg60=0.21 avg300=0.27 total={}\nfull avg10=0 avg60=0 avg300=0 total=9\n",
                  stalled_us),
      {});
  made.at_s = at_s;
  return made;
}

Provenance from(Origin origin, const std::string& probed_text = "") {
  Provenance provenance;
  provenance.origin = origin;
  provenance.probed_text = probed_text;
  return provenance;
}

Device measured_device(std::optional<double> busy_share = {}) {
  Device device = assumed_device(DeviceKind::ssd);
  device.name = "sda";
  device.write_bytes_per_s = 1e9;
  device.provenance["write_bandwidth"] = from(Origin::measured);
  device.busy_share = busy_share;
  return device;
}

/// Whether a probe that saw `share` may replace a description with `device`.
bool may_replace(const Device& device, std::optional<double> share) {
  Storage storage;
  storage.devices.push_back(device);
  return may_overwrite(storage, {{"sda", share, "other programs used much"}}).has_value();
}

const WatchedDevice disk{.disks = {{8, 0}}};

}  // namespace

TEST_CASE("activity: shares of the processors' and the disk's time, over all pauses") {
  Activity activity(disk);
  CHECK_FALSE(activity.busy_share());
  activity.add(counters(0, 100, 900, 50, 0), counters(1, 130, 970, 60, 0));       // 30 of 100 ticks, 10 of 1000 ms
  activity.add(counters(9, 500, 5000, 500, 0), counters(10, 510, 5090, 590, 0));  // 10 of 100 ticks, 90 of 1000 ms
  CHECK(*activity.processor_share() == doctest::Approx(0.2));
  CHECK(*activity.device_share() == doctest::Approx(0.05));
  CHECK(*activity.busy_share() == doctest::Approx(0.2));
  CHECK(activity.text() == "other programs used 20 % of the processors' time and 5 % of the device's time");
}

TEST_CASE("activity: only the processors that the process may use count, and waiting for I/O is not busy") {
  const std::string begin = "cpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n";
  // cpu0: 10 user, 10 nice, 10 system, 20 idle, 20 waiting, 10 interrupts, 10 soft interrupts, 10 stolen: 60 of 100
  const std::string end = "cpu0 10 10 10 20 20 10 10 10 0 0\ncpu1 100 0 0 0 0 0 0 0 0 0\n";
  const auto share = [&](const std::vector<unsigned>& processors) {
    Activity activity(disk);
    activity.add(parse_counters(begin, "", "", processors), parse_counters(end, "", "", processors));
    return *activity.processor_share();
  };
  CHECK(share({0}) == doctest::Approx(0.6));
  CHECK(share({1}) == doctest::Approx(1));
  CHECK(share({}) == doctest::Approx(0.8));
}

TEST_CASE("activity: a device without a line in diskstats is judged by the time that programs wait for I/O") {
  Activity server(WatchedDevice{});
  server.add(counters(0, 0, 0, 0, 1000), counters(2, 0, 100, 2000, 501000));  // 0.5 of 2 s; another disk was busy
  CHECK(*server.device_share() == doctest::Approx(0.25));
  Activity memory(WatchedDevice{.disks = {}, .is_memory = true});
  memory.add(counters(0, 0, 0, 0, 1000), counters(2, 0, 100, 2000, 501000));
  CHECK_FALSE(memory.device_share());
  CHECK(*memory.busy_share() == 0);
}

TEST_CASE("activity: what /proc does not tell, or tells wrongly, is unknown and counts as quiet") {
  const ActivityCounters none = parse_counters("", "", "", {});
  Activity activity(disk);
  activity.add(none, none);
  CHECK_FALSE(activity.busy_share());
  for (const char* text : {"cpu0", "cpu0 x y z", "cpu 1 2 3", "8 0", "some total=many", "\n\n \n", "cpu0 -1 5 5 5"}) {
    CAPTURE(text);
    const ActivityCounters broken = parse_counters(text, text, text, {});
    CHECK(broken.device_ms.empty());
    CHECK_FALSE(broken.stalled_us);
  }
  const test::Directory empty;
  CHECK_FALSE(read_counters(empty.path()).ticks);
  CHECK(may_replace(measured_device(), std::nullopt));
}

TEST_CASE("activity: counters that go back, as after a hot-plug, are no activity") {
  Activity activity(disk);
  activity.add(counters(0, 100, 100, 100, 100), counters(1, 50, 200, 50, 50));
  CHECK(*activity.busy_share() == 0);
}

TEST_CASE("activity: a probe of a busy machine does not replace a description of a quiet one") {
  CHECK(may_replace(measured_device(), 0.19));
  CHECK_FALSE(may_replace(measured_device(), 0.2));
  CHECK_FALSE(may_replace(measured_device(0.05), 0.9));
  CHECK(may_replace(measured_device(0.2), 0.9));  // it is no better
}

TEST_CASE("activity: only what a probe measured is kept from a busy probe") {
  Device by_hand = assumed_device(DeviceKind::ssd);
  by_hand.name = "sda";
  by_hand.provenance["write_bandwidth"] = {};
  CHECK(may_replace(by_hand, 0.9));
  Device inspected = by_hand;
  inspected.provenance["kind"] = from(Origin::measured);
  inspected.provenance["write_bandwidth"] = from(Origin::inspected);
  CHECK(may_replace(inspected, 0.9));
  Device corrected = by_hand;
  corrected.provenance["write_bandwidth"] = from(Origin::config, "\"1GB/s\"");
  CHECK_FALSE(may_replace(corrected, 0.9));
  Device other = measured_device();
  other.name = "sdb";  // of another machine: this probe does not replace it
  CHECK(may_replace(other, 0.9));
}

TEST_CASE("activity: the refusal names what was busy, how much, and what to do") {
  Storage storage;
  storage.devices = {measured_device()};
  const auto refused = may_overwrite(storage, {{"sda", 0.85, "other programs used 85 % of the processors' time"}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::infeasible);
  for (const char* part : {"sda: other programs used 85 %", "nothing was written", "--force", "--output", "20 %"})
    CHECK_MESSAGE(refused.error().message.find(part) != std::string::npos, part);
}
