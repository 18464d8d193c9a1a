#include "iosig/model/servers.h"

#include <cmath>

#include "iosig/base/text.h"

namespace iosig {
namespace {

Result<void> checked_service(const std::string& name, const char* direction, const ServiceTime& service) {
  if (!(std::isfinite(service.startup_s) && service.startup_s >= 0))
    return fail(ErrorKind::bad_input, "server class '{}': the start-up time of a {} is {} s; expected 0 or more",
                printable(name), direction, service.startup_s);
  if (!(std::isfinite(service.s_per_byte) && service.s_per_byte > 0))
    return fail(ErrorKind::bad_input,
                "server class '{}': the {} transfer time is {} s per byte; expected more than 0 "
                "and finite: give the bandwidth of its storage",
                printable(name), direction, service.s_per_byte);
  return {};
}

}  // namespace

std::uint32_t server_count(const Servers& servers) {
  std::uint32_t count = 0;
  for (const ServerClass& each : servers.classes) count += each.count;
  return count;
}

std::uint32_t class_of_server(const Servers& servers, std::uint32_t server) {
  std::uint32_t number = 0;
  for (; number + 1 < servers.classes.size() && server >= servers.classes[number].count; ++number)
    server -= servers.classes[number].count;
  return number;
}

Result<void> checked(const Servers& servers) {
  std::uint64_t count = 0;
  for (const ServerClass& each : servers.classes) {
    count += each.count;
    if (auto done = checked_service(each.name, "read", each.read); !done) return done;
    if (auto done = checked_service(each.name, "write", each.write); !done) return done;
  }
  if (count == 0) return fail(ErrorKind::bad_input, "no servers: expected at least one server in one class");
  if (count > max_servers) return fail(ErrorKind::bad_input, "{} servers: expected at most {}", count, max_servers);
  const ServerNetwork& network = servers.network;
  if (!(std::isfinite(network.connect_s) && network.connect_s >= 0))
    return fail(ErrorKind::bad_input, "network: a connection takes {} s; expected 0 or more", network.connect_s);
  if (!(std::isfinite(network.s_per_byte) && network.s_per_byte >= 0))
    return fail(ErrorKind::bad_input, "network: {} s per byte; expected 0 or more and finite", network.s_per_byte);
  if (servers.processes == 0 || servers.processes_per_node == 0)
    return fail(ErrorKind::bad_input, "clients: {} processes, {} on each node; expected at least 1 of both",
                servers.processes, servers.processes_per_node);
  return {};
}

}  // namespace iosig
