// Discovery and measurement on this machine itself: what must hold on any.
#include <doctest/doctest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "iosig/base/units.h"
#include "iosig/format/storage_toml.h"
#include "iosig/storage/discover.h"
#include "iosig/storage/measure.h"
#include "iosig/storage/probe.h"
#include "support/directories.h"

using namespace iosig;
namespace fs = std::filesystem;

namespace {

constexpr MeasureLimits shortest{.seconds = 0.4, .pass_s = 0.001, .bytes = 8 * MiB};

ProbeOptions options_for(const std::string& directory) {
  ProbeOptions options;
  options.limits = shortest;
  options.only = {directory};
  return options;
}

}  // namespace

TEST_CASE("discover: every mount point is a directory of its own file system in which this user can create files") {
  const auto discovery = discover();
  REQUIRE(discovery);
  std::set<std::string> names;
  for (const Found& found : discovery->found) {
    CAPTURE(found.mount.path);
    CHECK(fs::is_directory(found.mount.path));
    CHECK(::access(found.mount.path.c_str(), W_OK) == 0);
    CHECK(found.mount.path != "/");
    CHECK(found.mount.block_bytes >= 512);
    CHECK(names.insert(found.device.name).second);
    CHECK(found.mount.device == found.device.name);
    CHECK(found.device.write_bytes_per_s == assumed_device(found.device.kind).write_bytes_per_s);
  }
}

TEST_CASE("discover: a preferred directory stands for its file system") {
  const test::Directory directory("/var/tmp");
  const auto discovery = discover({directory.path()});
  REQUIRE(discovery);
  CHECK(std::ranges::count(discovery->found, directory.path(), [](const Found& f) { return f.mount.path; }) == 1);
}

TEST_CASE("inspection: the description can be written and read back") {
  const auto storage = inspect_storage();
  REQUIRE(storage);
  const auto back = parse_storage(storage_text(*storage), "test");
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(back->mount_points.size() == storage->mount_points.size());
}

TEST_CASE("measure: values are positive, spreads enclose them, and no file is left") {
  const test::Directory directory("/var/tmp");
  int pauses = 0;
  const auto measured = measure(
      directory.path(), 4096, shortest, [](std::string_view) {}, [&] { ++pauses; });
  REQUIRE_MESSAGE(measured, measured.error().message);
  CHECK(pauses > 5);
  for (const Estimate& estimate :
       {measured->write_bytes_per_s, measured->read_bytes_per_s, measured->operation_latency_s,
        measured->read_operation_latency_s, measured->random_read_latency_s, measured->random_write_latency_s,
        measured->random_new_write_latency_s, measured->random_drain_bytes_per_s, measured->buffered_write_bytes_per_s,
        measured->buffered_read_bytes_per_s}) {
    CHECK(estimate.mean > 0);
    CHECK(estimate.low <= estimate.mean);
    CHECK(estimate.mean <= estimate.high);
    CHECK(estimate.passes >= 1);
    CHECK((!estimate.settled || estimate.passes >= min_passes));
  }
  CHECK(measured->max_iops >= 1 / measured->operation_latency_s.mean);
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("measure: a directory in which no file can be created is refused with its name") {
  const auto measured = measure(
      "/proc", 4096, shortest, [](std::string_view) {}, [] {});
  REQUIRE_FALSE(measured);
  CHECK(measured.error().message.find("/proc") != std::string::npos);
}

TEST_CASE("probe: what a probe found is read back as measured or inspected, to the same numbers") {
  const test::Directory directory("/var/tmp");
  const auto probe = probe_storage(options_for(directory.path()), [](auto) {});
  REQUIRE_MESSAGE(probe, probe.error().message);
  REQUIRE(probe->storage.devices.size() == 1);
  const Device& found = probe->storage.devices.front();
  const auto back = parse_storage(storage_text(probe->storage), "test");
  REQUIRE_MESSAGE(back, back.error().message);
  const Device& read = back->devices.front();
  CHECK(read.write_bytes_per_s == found.write_bytes_per_s);
  CHECK(read.operation_latency_s == found.operation_latency_s);
  CHECK(read.random_write_latency_s == found.random_write_latency_s);
  CHECK(read.random_new_write_latency_s == found.random_new_write_latency_s);
  CHECK(read.busy_share == found.busy_share);
  REQUIRE(probe->activity.size() == 1);
  CHECK(probe->activity.front().device == found.name);
  CHECK(read.buffered_read_bytes_per_s == found.buffered_read_bytes_per_s);
  CHECK(read.provenance.at("write_bandwidth").origin == Origin::measured);
  CHECK(read.provenance.at("name").origin == Origin::inspected);
  CHECK(back->mount_points.front().provenance.at("path").origin == Origin::inspected);
}

TEST_CASE("probe: what may not be measured is skipped with the reason, before the first look") {
  ProbeOptions options;
  options.limits = shortest;
  options.refusal = [](const std::string&) { return "is forbidden"; };
  std::size_t looked_at = 99;
  options.first_look = [&](const std::vector<SeenActivity>& seen) {
    looked_at = seen.size();
    return Result<void>{};
  };
  const auto probe = probe_storage(options, [](auto) {});
  REQUIRE(probe);
  CHECK(probe->storage.mount_points.empty());
  CHECK(std::ranges::count(probe->skipped, "is forbidden", &Skipped::reason) > 0);
  CHECK(looked_at == 0);
}

TEST_CASE("probe: a first look that finds the machine too busy ends the probe before it measures") {
  const test::Directory directory("/var/tmp");
  ProbeOptions options = options_for(directory.path());
  options.first_look = [](const std::vector<SeenActivity>& seen) -> Result<void> {
    CHECK(seen.size() == 1);
    return fail(ErrorKind::infeasible, "too busy");
  };
  const auto probe = probe_storage(options, [](auto) { FAIL("it measures"); });
  REQUIRE_FALSE(probe);
  CHECK(probe.error().message == "too busy");
}

TEST_CASE("probe: a directory that is not a destination is refused with the reason") {
  const auto probe = probe_storage(options_for("/proc"), [](auto) {});
  REQUIRE_FALSE(probe);
  CHECK(probe.error().kind == ErrorKind::infeasible);
}
