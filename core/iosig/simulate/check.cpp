#include "iosig/simulate/check.h"

#include <cmath>
#include <string_view>

namespace iosig::simulate {
namespace {

bool is_rate(double bytes_per_s) { return std::isfinite(bytes_per_s) && bytes_per_s > 0; }
bool is_time(double time_s) { return std::isfinite(time_s) && time_s >= 0; }

Result<void> check_costs(std::size_t server, std::string_view direction, const DiskCosts& costs) {
  if (!is_rate(costs.bytes_per_s))
    return fail(ErrorKind::usage, "server {}: {} rate {} bytes/s: expected more than 0", server, direction,
                costs.bytes_per_s);
  if (!is_time(costs.start_s) || !is_time(costs.near_start_s))
    return fail(ErrorKind::usage, "server {}: {} start-up {} s and {} s: expected at least 0", server, direction,
                costs.start_s, costs.near_start_s);
  if (!(costs.spread >= 0 && costs.spread <= 1))
    return fail(ErrorKind::usage, "server {}: {} spread {}: expected 0 to 1", server, direction, costs.spread);
  return {};
}

Result<void> check_layout(const System& system, std::size_t number) {
  const Layout& layout = system.layouts[number];
  std::vector<bool> is_seen(system.servers.size());
  std::uint64_t sum = 0;
  for (const Stripe& stripe : layout.stripes()) {
    if (stripe.server >= system.servers.size() || is_seen[stripe.server])
      return fail(ErrorKind::usage, "layout {}: server {}: expected each of {} servers at most once", number,
                  stripe.server, system.servers.size());
    is_seen[stripe.server] = true;
    if (stripe.bytes >= bytes_limit || (sum += stripe.bytes) >= bytes_limit)
      return fail(ErrorKind::usage, "layout {}: its stripes have 2^62 bytes or more together", number);
  }
  if (sum == 0) return fail(ErrorKind::usage, "layout {}: every stripe has 0 bytes", number);
  return {};
}

Result<void> check_links(const System& system) {
  for (std::size_t n = 0; n < system.nodes.size(); ++n)
    if (!is_rate(system.nodes[n].link_bytes_per_s))
      return fail(ErrorKind::usage, "node {}: link {} bytes/s: expected more than 0", n,
                  system.nodes[n].link_bytes_per_s);
  for (std::size_t n = 0; n < system.clients.size(); ++n)
    if (system.clients[n].node >= system.nodes.size())
      return fail(ErrorKind::usage, "client {}: node {}: there are {}", n, system.clients[n].node, system.nodes.size());
  if (!is_time(system.latency_s)) return fail(ErrorKind::usage, "latency {} s: expected at least 0", system.latency_s);
  return {};
}

}  // namespace

Result<void> check(const System& system) {
  if (system.servers.empty() || system.nodes.empty() || system.clients.empty() || system.layouts.empty())
    return fail(ErrorKind::usage, "{} servers, {} nodes, {} clients, {} layouts: expected at least one of each",
                system.servers.size(), system.nodes.size(), system.clients.size(), system.layouts.size());
  for (std::size_t n = 0; n < system.servers.size(); ++n) {
    const Server& server = system.servers[n];
    if (auto sound = check_costs(n, "read", server.read); !sound) return sound;
    if (auto sound = check_costs(n, "write", server.write); !sound) return sound;
    if (!is_rate(server.link_bytes_per_s))
      return fail(ErrorKind::usage, "server {}: link {} bytes/s: expected more than 0", n, server.link_bytes_per_s);
  }
  for (std::size_t n = 0; n < system.layouts.size(); ++n)
    if (auto sound = check_layout(system, n); !sound) return sound;
  return check_links(system);
}

}  // namespace iosig::simulate
