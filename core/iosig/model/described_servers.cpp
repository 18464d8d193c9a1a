#include "iosig/model/described_servers.h"

#include <algorithm>
#include <cmath>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig {
namespace {

/// A server's values, complete.
struct Times {
  ServiceTime read, write;
  std::optional<std::uint64_t> capacity_bytes;
};

Times times_of(const Storage& storage, const Server& server) {
  const Device* const device = storage.device_of(server);
  const Device none;
  const Device& known = device == nullptr ? none : *device;
  const double read_latency_s = known.read_operation_latency_s.value_or(known.operation_latency_s);
  Times times;
  times.read.startup_s =
      server.read_startup_s.value_or(known.random_read_latency_s.value_or(read_latency_s + known.seek_latency_s));
  times.write.startup_s = server.write_startup_s.value_or(
      known.random_write_latency_s.value_or(known.operation_latency_s + known.seek_latency_s));
  times.read.s_per_byte = 1 / server.read_bytes_per_s.value_or(known.read_bytes_per_s);
  times.write.s_per_byte = 1 / server.write_bytes_per_s.value_or(known.write_bytes_per_s);
  const MountPoint* const mount = storage.find_mount_point(server.mount_point);
  times.capacity_bytes = server.capacity_bytes;
  if (!times.capacity_bytes && mount != nullptr && is_free_space_set(*mount)) times.capacity_bytes = mount->free_bytes;
  if (!times.capacity_bytes) times.capacity_bytes = known.capacity_bytes;
  return times;
}

/// One time of all servers of a class.
struct Spread {
  double sum = 0, least = INFINITY, greatest = 0;
  void add(double value) {
    sum += value;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
};

/// The mean of a value of the members. Fails if they differ too much.
Result<double> mean_of(const std::string& name, const char* what, const std::vector<Times>& members,
                       double (*value)(const Times&)) {
  Spread spread;
  for (const Times& each : members) spread.add(value(each));
  if (spread.greatest > max_class_spread * spread.least)
    return fail(ErrorKind::bad_input,
                "class '{}': the {} of its servers differs by a factor of {:.3g}; expected at most {}: give those that "
                "differ another class",
                printable(name), what, spread.greatest / spread.least, max_class_spread);
  return spread.sum / static_cast<double>(members.size());
}

Result<ServerClass> class_of(const std::string& name, const std::vector<Times>& members) {
  ServerClass made;
  made.name = name;
  made.count = static_cast<std::uint32_t>(members.size());
  struct Mean {
    const char* what;
    double (*value)(const Times&);
    double* into;
  };
  for (const Mean& each :
       {Mean{"read start-up", [](const Times& times) { return times.read.startup_s; }, &made.read.startup_s},
        Mean{"read transfer time", [](const Times& times) { return times.read.s_per_byte; }, &made.read.s_per_byte},
        Mean{"write start-up", [](const Times& times) { return times.write.startup_s; }, &made.write.startup_s},
        Mean{"write transfer time", [](const Times& times) { return times.write.s_per_byte; },
             &made.write.s_per_byte}}) {
    const auto mean = mean_of(name, each.what, members, each.value);
    if (!mean) return pass_on(mean.error());
    *each.into = *mean;
  }
  for (const Times& each : members)
    if (each.capacity_bytes)
      made.capacity_bytes = std::min(*each.capacity_bytes, made.capacity_bytes.value_or(*each.capacity_bytes));
  return made;
}

}  // namespace

Result<DescribedServers> described_servers(const Storage& storage, std::uint32_t processes,
                                           std::uint32_t processes_per_node) {
  if (storage.servers.empty())
    return fail(ErrorKind::infeasible,
                "the storage description has no [[server]]; expected the servers that files can be striped over");
  DescribedServers made;
  std::vector<std::string> classes;
  std::vector<std::vector<Times>> members;
  for (const Server& server : storage.servers) {
    const auto known = std::ranges::find(classes, server.server_class);
    const auto n = static_cast<std::size_t>(known - classes.begin());
    if (known == classes.end()) {
      classes.push_back(server.server_class);
      members.emplace_back();
      made.names.emplace_back();
    }
    members[n].push_back(times_of(storage, server));
    made.names[n].push_back(server.name);
  }
  for (std::size_t n = 0; n < classes.size(); ++n) {
    auto each = class_of(classes[n], members[n]);
    if (!each) return pass_on(each.error());
    made.servers.classes.push_back(*std::move(each));
  }
  const Network network = storage.network.value_or(Network{});
  made.servers.network = {network.startup_s, 1 / network.bytes_per_s};
  made.servers.processes = processes;
  made.servers.processes_per_node = processes_per_node;
  if (const auto sound = checked(made.servers); !sound) return pass_on(sound.error());
  return made;
}

}  // namespace iosig
