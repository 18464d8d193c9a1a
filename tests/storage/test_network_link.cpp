// Connections of the network probe, over both families.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "iosig/storage/network_link.h"

using namespace iosig;
using network::after;
using network::Connection;
using network::Listener;

TEST_CASE("network link: a listener takes connections over IPv4 and IPv6, each seen by its own address") {
  const auto listener = Listener::open();
  REQUIRE(listener);
  const std::vector<std::string> own = network::own_addresses();
  for (const std::string address : {"127.0.0.1", "::1"}) {
    CAPTURE(address);
    if (std::ranges::find(own, address) == own.end()) continue;  // a host with one family only
    auto made = Connection::to({{"fd00:dead::1 is no address", address}, listener->port()}, after(5));
    REQUIRE(made);
    CHECK(made->own_address() == address);
    CHECK(network::is_loopback(address));
    auto taken = listener->accept(after(5));
    REQUIRE(taken);
    REQUIRE(made->write("hello\n", after(5)));
    CHECK_FALSE(taken->has_ended());
    CHECK(taken->read_line(after(5)).value() == "hello");
  }
  CHECK_FALSE(Connection::to({{"nowhere"}, listener->port()}, after(1)));
}

TEST_CASE("network link: a peer that has ended is noticed, also before what it sent was read") {
  const auto listener = Listener::open();
  REQUIRE(listener);
  auto made = Connection::to({{"127.0.0.1"}, listener->port()}, after(5));
  REQUIRE(made);
  auto taken = listener->accept(after(5));
  REQUIRE(taken);
  REQUIRE(made->write("last words\n", after(5)));
  made = fail(ErrorKind::system, "closed");
  for (const auto end = after(5); !taken->has_ended() && network::Clock::now() < end;) {
  }
  CHECK(taken->has_ended());
  CHECK(taken->read_line(after(5)).value() == "last words");
  CHECK_FALSE(taken->read_line(after(5)));
}
