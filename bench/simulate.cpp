// How many parts of requests the simulator handles in a second of processor time: 32 clients, 16 servers, requests that
// fall on 1, 4 or 16 of them, read and written.
#include <fmt/format.h>

#include <ctime>

#include "iosig/base/mix.h"
#include "iosig/simulate/engine.h"

namespace {

using namespace iosig;
using namespace iosig::simulate;

constexpr std::uint32_t servers = 16, clients = 32;
constexpr std::uint64_t request_bytes = 1 << 20, region_bytes = 64 << 20;

System system_with(std::uint64_t stripe_bytes) {
  System system{.latency_s = 1e-4};
  std::vector<Stripe> stripes;
  for (std::uint32_t n = 0; n < servers; ++n) {
    const DiskCosts costs{.start_s = 8e-3, .near_start_s = 5e-3, .spread = 0.5, .bytes_per_s = 100e6};
    system.servers.push_back({costs, costs, 117e6});
    stripes.push_back({n, stripe_bytes});
  }
  for (std::uint32_t n = 0; n < clients; ++n) {
    system.nodes.push_back({117e6});
    system.clients.push_back({.node = n});
  }
  system.layouts.emplace_back(stripes);
  return system;
}

void measure(std::uint32_t servers_of_a_request, bool is_write) {
  const System system = system_with(request_bytes / servers_of_a_request);
  std::uint64_t sent = 0;
  const std::uint64_t count = 4'000'000 / servers_of_a_request;
  const std::clock_t begin = std::clock();
  const auto totals = run(system, [&](std::uint32_t, double, ClientRequest& next) {
    next = {.region = static_cast<std::uint32_t>(mixed(sent) % 512),
            .offset = mixed(sent + count) % (region_bytes / request_bytes) * request_bytes,
            .bytes = request_bytes,
            .is_write = is_write};
    return sent++ < count;
  });
  const double cpu_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print("{:2} parts a request, {}: {:.2f} M parts/s ({:.2f} s of the processor)\n", servers_of_a_request,
             is_write ? "written" : "read   ", static_cast<double>(totals->parts) / cpu_s / 1e6, cpu_s);
}

}  // namespace

int main() {
  for (const std::uint32_t parts : {1U, 4U, 16U})
    for (const bool is_write : {false, true}) measure(parts, is_write);
}
