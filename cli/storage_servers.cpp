#include "storage_servers.h"

#include <fmt/format.h>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/model/described_servers.h"

namespace iosig::cli {
namespace {

std::string about_capacity(const ServerClass& servers) {
  return servers.capacity_bytes ? about_bytes(static_cast<double>(*servers.capacity_bytes)) : "-";
}

}  // namespace

int say_servers(const Storage& storage, Console& console) {
  if (storage.servers.empty()) return yes;
  const auto described = described_servers(storage, 1, 1);
  if (!described) return console.fail(described.error());
  Table table({"SERVERS", "CLASS", "READ STARTUP", "READ", "WRITE STARTUP", "WRITE", "CAPACITY OF EACH"});
  for (const ServerClass& each : described->servers.classes)
    table.add({fmt::format("{}", each.count), printable(each.name), about_seconds(each.read.startup_s),
               about_rate(1 / each.read.s_per_byte), about_seconds(each.write.startup_s),
               about_rate(1 / each.write.s_per_byte), about_capacity(each)});
  console.say(table);
  const ServerNetwork& network = described->servers.network;
  console.say(
      fmt::format("network: {} to connect, {}", about_seconds(network.connect_s), about_rate(1 / network.s_per_byte)));
  return yes;
}

}  // namespace iosig::cli
