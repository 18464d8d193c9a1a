#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "iosig/base/crc32c.h"
#include "iosig/base/text.h"
#include "iosig/observe/query.h"
#include "trace/part_maker.h"
#include "trace/place.h"

using namespace iosig;
using namespace iosig::observe;
using namespace iosig::trace::test;
using trace::Call;
using trace::Layer;
using trace::PartHeader;
using trace::Slot;

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

Device powered(std::string name, double idle_w, double active_w) {
  Device device;
  device.name = std::move(name);
  device.idle_power_w = idle_w;
  device.active_power_w = active_w;
  return device;
}

/// sda draws 2 W and 6 W, sdb 1 W and 3 W; md, a stripe of both, has no power of its own; old has none at all. /md is
/// on md, /a on sda, /old on old, /shared on nas, which all nodes share.
Storage described() {
  Storage storage;
  storage.devices = {powered("sda", 2, 6), powered("sdb", 1, 3), powered("nas", 10, 20)};
  storage.devices.resize(5);
  storage.devices[3].name = "md";
  storage.devices[3].redundancy = Redundancy{.members = {"sda", "sdb"}};
  storage.devices[4].name = "old";
  for (const auto& [path, device] : {std::pair{"/md", "md"}, {"/a", "sda"}, {"/old", "old"}, {"/shared", "nas"}}) {
    MountPoint mount;
    mount.path = path;
    mount.device = device;
    mount.visibility = mount.path == "/shared" ? Visibility::global : Visibility::local;
    storage.mount_points.push_back(mount);
  }
  return storage;
}

/// A write to file `file`, in seconds after the start of the trace.
Slot write_at(std::uint32_t id, std::uint32_t file, std::int64_t from_s, std::int64_t to_s) {
  Slot slot = call(id);
  slot.start = 1000 + static_cast<std::uint64_t>(from_s * second_ns);
  slot.end = 1000 + static_cast<std::uint64_t>(to_s * second_ns);
  slot.file = slot.path = file;
  return slot;
}

Bytes part_with_names(PartHeader header, const std::vector<Slot>& slots) {
  return part(header, slots,
              {name_chunk(1, "/a/x"), name_chunk(2, "/md/x"), name_chunk(3, "/old/x"), name_chunk(4, "/shared/x"),
               name_chunk(5, "/else/x"), name_chunk(6, "/a/y")});
}

PartHeader header_on(const char* host, std::uint64_t process, std::int32_t pid) {
  PartHeader header = header_of(process, pid);
  std::memset(header.host, 0, sizeof header.host);
  std::memcpy(header.host, host, std::strlen(host));
  header.boot = fnv1a(host);
  header.checksum = crc32c({reinterpret_cast<const std::uint8_t*>(&header), offsetof(PartHeader, checksum)});
  return header;
}

Answer power_of(const Place& place, const DevicePowers& powers, std::vector<Key> by = {}, Value value = Value::energy) {
  std::vector<trace::Trace> traces;
  traces.push_back(*trace::Trace::open(place.path));
  const Query query{
      .filter = {.layer = Layer::posix}, .by = std::move(by), .value = value, .divides_calls = true, .powers = &powers};
  auto found = answer(traces, query);
  REQUIRE(found);
  for (Row& row : found->rows) row.process = nullptr;  // the trace is gone
  return std::move(*found);
}

double active_j(const Row& row) {
  double sum = 0;
  for (const DeviceEnergy& device : row.devices) sum += device.active_j;
  return sum;
}
double idle_j(const Row& row) {
  double sum = 0;
  for (const DeviceEnergy& device : row.devices) sum += device.idle_j;
  return sum;
}

}  // namespace

TEST_CASE("power: overlapping calls on one device draw its active power once, and between calls it is idle") {
  const Place place;
  // On sda: busy in [0, 3) and [5, 6), two calls in [1, 2).
  place.put("a.part", part_with_names(header_of(9, 42), {write_at(1, 1, 0, 2), write_at(2, 1, 5, 6)}));
  place.put("b.part", part_with_names(header_of(10, 43), {write_at(1, 6, 1, 3)}));
  const DevicePowers powers(described());
  const Answer whole = power_of(place, powers);
  REQUIRE(whole.rows.size() == 1);
  CHECK(active_j(whole.rows[0]) == doctest::Approx(6 * 4));
  CHECK(idle_j(whole.rows[0]) == doctest::Approx(2 * 2));
  // The calls' own energies are 12, 6 and 12 J: they overlap.
  CHECK(whole.rows[0].values.mean() == doctest::Approx(10e9));
  CHECK(whole.rows[0].values.greatest() == 12 * second_ns);
  const Answer by_process = power_of(place, powers, {Key::process});
  REQUIRE(by_process.rows.size() == 2);
  CHECK(active_j(by_process.rows[0]) == doctest::Approx(6 * 3));
  CHECK(idle_j(by_process.rows[0]) == doctest::Approx(2 * 3));
  CHECK(active_j(by_process.rows[1]) == doctest::Approx(6 * 2));
}

TEST_CASE("power: a composite draws what its members draw, and a member that is also used alone is busy once") {
  const Place place;
  // md is busy in [0, 2), sda also in [1, 4): sda 4 s, sdb 2 s of 4 s.
  place.put("a.part", part_with_names(header_of(9, 42), {write_at(1, 2, 0, 2)}));
  place.put("b.part", part_with_names(header_of(10, 43), {write_at(1, 1, 1, 4)}));
  const DevicePowers powers(described());
  const Answer found = power_of(place, powers);
  CHECK(active_j(found.rows[0]) == doctest::Approx(6 * 4 + 3 * 2));
  CHECK(idle_j(found.rows[0]) == doctest::Approx(1 * 2));
  CHECK(found.rows[0].values.greatest() == 18 * second_ns);  // (6 + 3) W for 2 s; 6 W for 3 s
  Storage with_own = described();
  with_own.devices[3].idle_power_w = 4;
  with_own.devices[3].active_power_w = 5;
  const DevicePowers own(with_own);
  CHECK(active_j(power_of(place, own).rows[0]) == doctest::Approx(5 * 2 + 6 * 3));
}

TEST_CASE("power: what is unknown is counted and named, and adds neither time nor energy") {
  const Place place;
  place.put("a.part",
            part_with_names(header_of(9, 42), {write_at(1, 3, 0, 2), write_at(2, 5, 2, 3), write_at(3, 1, 5, 6)}));
  const DevicePowers powers(described());
  const Answer found = power_of(place, powers);
  CHECK(found.rows[0].calls == 3);
  CHECK(found.rows[0].unknown_calls == 2);
  CHECK(active_j(found.rows[0]) == doctest::Approx(6));
  CHECK(idle_j(found.rows[0]) == 0);
  CHECK(found.unknown_calls.at("device 'old' has no idle_power and active_power") == 1);
  CHECK(found.unknown_calls.at("the file is on no mount point of the description") == 1);
  Storage half = described();
  half.devices[1].idle_power_w.reset();  // sdb, a member of md
  const DevicePowers half_known(half);
  CHECK(half_known.place_of("/md/x").unknown == "device 'sdb' has no idle_power");
  const Answer by_file = power_of(place, powers, {Key::file});
  for (const Row& row : by_file.rows) CHECK(row.devices.empty() == (row.unknown_calls > 0));
}

TEST_CASE("power: each node has its own local device, and all nodes share a global one") {
  const Place place;
  place.put("a.part", part_with_names(header_on("node1", 9, 42), {write_at(1, 1, 0, 2), write_at(2, 4, 2, 4)}));
  place.put("b.part", part_with_names(header_on("node2", 10, 43), {write_at(1, 1, 0, 2), write_at(2, 4, 2, 4)}));
  const DevicePowers powers(described());
  const Answer found = power_of(place, powers);
  // Two sda for 2 s each, then idle for 2 s; one nas for 2 s, before that idle for 2 s.
  CHECK(active_j(found.rows[0]) == doctest::Approx(2 * 6 * 2 + 20 * 2));
  CHECK(idle_j(found.rows[0]) == doctest::Approx(2 * 2 * 2 + 10 * 2));
  CHECK(found.compares_clocks);
}

TEST_CASE("power: the windows of a call share its time, and a device is idle in the rest of each") {
  const Place place;
  place.put("a.part", part_with_names(header_of(9, 42), {write_at(1, 1, 0, 1), write_at(2, 1, 1, 3)}));
  const DevicePowers powers(described());
  std::vector<trace::Trace> traces;
  traces.push_back(*trace::Trace::open(place.path));
  const Query query{.filter = {.layer = Layer::posix},
                    .by = {Key::window},
                    .window_ns = 2 * second_ns,
                    .divides_calls = true,
                    .powers = &powers};
  const auto found = answer(traces, query);
  REQUIRE(found);
  REQUIRE(found->rows.size() == 2);
  CHECK(active_j(found->rows[0]) == doctest::Approx(12));
  CHECK(idle_j(found->rows[0]) == 0);
  CHECK(active_j(found->rows[1]) == doctest::Approx(6));
  CHECK(idle_j(found->rows[1]) == doctest::Approx(2));
}

TEST_CASE("power: a path belongs to the longest mount point above it, and files of the system to none of them") {
  Storage storage = described();
  storage.mount_points[0].path = "/";
  const DevicePowers powers(storage);
  CHECK(powers.place_of("/home/x").active_power_w == 9);
  CHECK(powers.place_of("/a/x").active_power_w == 6);
  CHECK(powers.place_of("/ab").active_power_w == 9);
  CHECK_FALSE(powers.place_of("/proc/self/maps").unknown.empty());
  CHECK_FALSE(powers.place_of("relative").unknown.empty());
  CHECK(powers.place_of("").unknown == "no file is known");
}
