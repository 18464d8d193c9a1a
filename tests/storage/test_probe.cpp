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
constexpr MeasureLimits shortest{.seconds = 0.3, .bytes = 8 * MiB};
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
  const auto measured = measure(directory.path(), 4096, shortest, [](std::string_view) {});
  REQUIRE_MESSAGE(measured, measured.error().message);
  for (const Spread& spread :
       {measured->write_bytes_per_s, measured->read_bytes_per_s, measured->operation_latency_s,
        measured->read_operation_latency_s, measured->random_read_latency_s, measured->random_write_latency_s,
        measured->buffered_write_bytes_per_s, measured->buffered_read_bytes_per_s}) {
    CHECK(spread.median > 0);
    CHECK(spread.low <= spread.median);
    CHECK(spread.median <= spread.high);
  }
  CHECK(measured->max_iops >= 1 / measured->operation_latency_s.median);
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("measure: a directory in which no file can be created is refused with its name") {
  const auto measured = measure("/proc", 4096, shortest, [](std::string_view) {});
  REQUIRE_FALSE(measured);
  CHECK(measured.error().message.find("/proc") != std::string::npos);
}

TEST_CASE("probe: what a probe found is read back as measured or inspected, to the same numbers") {
  const test::Directory directory("/var/tmp");
  const auto probe = probe_storage({.limits = shortest, .directories = {}, .only = {directory.path()}}, [](auto) {});
  REQUIRE_MESSAGE(probe, probe.error().message);
  REQUIRE(probe->storage.devices.size() == 1);
  const Device& found = probe->storage.devices.front();
  const auto back = parse_storage(storage_text(probe->storage), "test");
  REQUIRE_MESSAGE(back, back.error().message);
  const Device& read = back->devices.front();
  CHECK(read.write_bytes_per_s == found.write_bytes_per_s);
  CHECK(read.operation_latency_s == found.operation_latency_s);
  CHECK(read.random_write_latency_s == found.random_write_latency_s);
  CHECK(read.buffered_read_bytes_per_s == found.buffered_read_bytes_per_s);
  CHECK(read.provenance.at("write_bandwidth").origin == Origin::measured);
  CHECK(read.provenance.at("name").origin == Origin::inspected);
  CHECK(back->mount_points.front().provenance.at("path").origin == Origin::inspected);
}

TEST_CASE("probe: a directory that is not a destination is refused with the reason") {
  const auto probe = probe_storage({.limits = shortest, .directories = {}, .only = {"/proc"}}, [](auto) {});
  REQUIRE_FALSE(probe);
  CHECK(probe.error().kind == ErrorKind::infeasible);
}
