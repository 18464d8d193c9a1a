// The servers of a storage description become classes.
#include <doctest/doctest.h>

#include "iosig/base/units.h"
#include "iosig/model/described_servers.h"

using namespace iosig;

namespace {

Server server_of(const std::string& name, const std::string& server_class, double startup_s) {
  Server server;
  server.name = name;
  server.server_class = server_class;
  server.read_startup_s = startup_s;
  server.write_startup_s = 2 * startup_s;
  server.read_bytes_per_s = 1e8;
  server.write_bytes_per_s = 5e7;
  return server;
}

}  // namespace

TEST_CASE(
    "described servers: classes come in the order of their first servers, with mean times and the least capacity") {
  Storage storage;
  storage.servers = {server_of("b0", "big", 4e-3), server_of("f0", "fast", 1e-4), server_of("b1", "big", 6e-3)};
  storage.servers[0].capacity_bytes = 3 * GiB;
  storage.servers[2].capacity_bytes = 2 * GiB;
  storage.network = Network{1e-3, 1e9, {}};
  const auto made = described_servers(storage, 16, 4);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  const Servers& servers = made->servers;
  REQUIRE(servers.classes.size() == 2);
  CHECK(servers.classes[0].name == "big");
  CHECK(servers.classes[0].count == 2);
  CHECK(servers.classes[0].read.startup_s == doctest::Approx(5e-3));
  CHECK(servers.classes[0].write.startup_s == doctest::Approx(1e-2));
  CHECK(servers.classes[0].read.s_per_byte == doctest::Approx(1e-8));
  CHECK(servers.classes[0].write.s_per_byte == doctest::Approx(2e-8));
  CHECK(servers.classes[0].capacity_bytes == 2 * GiB);
  CHECK_FALSE(servers.classes[1].capacity_bytes.has_value());
  CHECK(servers.network.connect_s == 1e-3);
  CHECK(servers.network.s_per_byte == doctest::Approx(1e-9));
  CHECK(servers.processes == 16);
  CHECK(servers.processes_per_node == 4);
  CHECK(made->names == std::vector<std::vector<std::string>>{{"b0", "b1"}, {"f0"}});
}

TEST_CASE("described servers: what a server lacks follows from its device") {
  Storage storage;
  Device disk = assumed_device(DeviceKind::hdd);  // 100 MB/s, 10 ms an operation, 10 ms a seek
  disk.name = "sda";
  storage.devices = {disk};
  Server plain;
  plain.name = "h";
  plain.server_class = "hdd";
  plain.device = "sda";
  storage.servers = {plain};
  auto made = described_servers(storage, 1, 1);
  CHECK(made->servers.classes[0].read.startup_s == doctest::Approx(20e-3));
  CHECK(made->servers.classes[0].write.startup_s == doctest::Approx(20e-3));
  CHECK(made->servers.classes[0].read.s_per_byte == doctest::Approx(1 / (100.0 * MiB)));
  storage.devices[0].random_read_latency_s = 7e-3;
  storage.devices[0].random_write_latency_s = 9e-3;
  storage.servers[0].write_startup_s = 1e-3;  // by hand wins
  made = described_servers(storage, 1, 1);
  CHECK(made->servers.classes[0].read.startup_s == doctest::Approx(7e-3));
  CHECK(made->servers.classes[0].write.startup_s == doctest::Approx(1e-3));
}

TEST_CASE("described servers: unlike servers of a class, and no servers, are refused") {
  Storage storage;
  CHECK(described_servers(storage, 1, 1).error().kind == ErrorKind::infeasible);
  storage.servers = {server_of("a", "disk", 4e-3), server_of("b", "disk", 8e-3)};
  CHECK(described_servers(storage, 1, 1).has_value());  // a factor of 2 is still alike
  storage.servers[1].read_startup_s = 8.1e-3;
  const auto refused = described_servers(storage, 1, 1);
  CHECK(refused.error().kind == ErrorKind::bad_input);
  CHECK(refused.error().message.find("class 'disk': the read start-up of its servers differs by a factor of 2.02") !=
        std::string::npos);
  storage.servers.pop_back();
  CHECK(described_servers(storage, 0, 1).error().kind == ErrorKind::bad_input);
}
