// Predicts what requests cost over servers of unlike speed: of one request, and of many under load.
//
// Source: docs/references.md#h2dp section 3.4, Tables 2 and 3. Ours: the bytes that each server really gets for a
// request's offset and length, any number of classes, servers that a request does not touch cost nothing, and the load
// of each server. Pure; takes checked Servers and Stripes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/servers.h"
#include "iosig/model/striping.h"

namespace iosig {

/// The part of a request that one server gets. A server's bytes of a region are one file; the part is contiguous in it.
struct StripePart {
  std::uint32_t server = 0;
  std::uint64_t offset = 0;  ///< in the server's file of the region
  std::uint64_t bytes = 0;   ///< > 0

  bool operator==(const StripePart&) const = default;
};

/// Returns nothing, or `bad_input`: another number of stripe sizes than classes, no stripe > 0 on any server, a period
/// above max_bytes.
[[nodiscard]] Result<void> checked(const Stripes& stripes, const Servers& servers);

/// Where each byte of a region lies. Keeps no reference.
class StripeMap {
 public:
  /// The first stripe of each class lies on its server `rotation` modulo count: regions that begin at different servers
  /// load the servers of a class evenly.
  StripeMap(const Servers& servers, const Stripes& stripes, std::uint32_t rotation = 0);

  /// m h + n s: the bytes of one stripe on every server.
  [[nodiscard]] std::uint64_t period_bytes() const { return period_; }
  /// Replaces `parts` by those of the range, in the order of their first bytes; offset + length <= 2^63.
  void parts(std::uint64_t offset, std::uint64_t length, std::vector<StripePart>& parts) const;
  /// Returns the bytes that server `server` holds of a region of `length` bytes.
  [[nodiscard]] std::uint64_t bytes_on(std::uint32_t server, std::uint64_t length) const;

 private:
  struct Holder {
    std::uint32_t server;
    std::uint64_t start, stripe;  ///< in a period
  };
  std::vector<Holder> holders_;  ///< servers with a stripe > 0
  std::uint64_t period_ = 0;
};

/// Returns the most bytes that a server of each class holds of a region of `length` bytes.
[[nodiscard]] std::vector<std::uint64_t> bytes_on_classes(const Servers& servers, const Stripes& stripes,
                                                          std::uint64_t length);

/// The terms of Tables 2 and 3: when the requests of all processes meet at the same servers.
struct RequestCost {
  double connect_s = 0;   ///< TE
  double transfer_s = 0;  ///< TX
  double storage_s = 0;   ///< TS + TT
  [[nodiscard]] double seconds() const { return connect_s + transfer_s + storage_s; }
};

/// The general form: k servers get bytes, the most of them b_max:
///   TE = max(p, c k) e,  TX = max(c r t, p b_max t),  TS + TT = p max over these servers (alpha + bytes beta).
/// Equal to Table 2 where m h + n s = r, 0 < h <= s, and to Table 3 where h = r / m, s = 0. All 0 for an empty request.
[[nodiscard]] RequestCost request_cost(const Servers& servers, const StripeMap& map, const Request& request);

/// Table 2 as printed: h = 0 still pays the HServers' start-up, and the transfer is that of s. `servers` has two
/// classes: HServers, SServers.
[[nodiscard]] RequestCost table2_cost(const Servers& servers, std::uint64_t h, std::uint64_t s, std::uint64_t r,
                                      bool is_write);
/// Table 3 as printed: only the first class, stripes of r / m (not rounded). `servers.classes[0].count` > 0.
[[nodiscard]] RequestCost table3_cost(const Servers& servers, std::uint64_t r, bool is_write);

/// Busy time of the servers of one class: of the busiest one, and the mean of all.
struct ClassLoad {
  double storage_s = 0, network_s = 0;  ///< the busiest server's storage and link, which may be two servers
  double mean_storage_s = 0, mean_network_s = 0;
};

/// Busy time of one server, in a region whose first stripes lie on the first server of each class.
struct ServerLoad {
  std::uint32_t server = 0;
  double storage_s = 0, network_s = 0;

  bool operator==(const ServerLoad&) const = default;
};

/// The busy time that requests cause on servers and clients.
///
/// A connection counts only as latency: a server that waits for one serves other requests.
struct Load {
  std::vector<ClassLoad> classes;
  /// Of a region whose servers are unevenly busy, by more than 2 % within a class: each busy server, ascending.
  /// Otherwise empty; the means of `classes` hold for each server.
  std::vector<ServerLoad> servers;
  double client_s = 0;   ///< busy time of each client node's link, if the nodes share the requests evenly
  double latency_s = 0;  ///< sum over the requests of the time that each takes alone
  double requests = 0, bytes = 0;
};

inline constexpr std::uint64_t default_max_phases = 1024;

/// Returns the load of `groups` on a region with this layout.
///
/// Exact for up to `max_phases` > 0 phases (offsets modulo the period) of a group. Of others, max_phases evenly
/// distributed ones stand for all; where they cover whole periods, servers of one class count as equally loaded.
[[nodiscard]] Load load_of(const Servers& servers, const Stripes& stripes, std::span<const RequestGroup> groups,
                           std::uint64_t max_phases = default_max_phases);

/// How many requests are there at a time. n requests of p processes: N = min(n, p) at a time, on min(N, nodes) nodes.
struct Concurrency {
  double requests = 0;  ///< n; 0: as if there were very many
  double active = 1;    ///< N
  double nodes = 1;     ///< that send them, against all client nodes: 1 if it is all

  /// Returns the time of a resource that is busy for `busy_s` of requests that take `latency_s` in all, each alone:
  /// (1 - 1 / N) busy_s + latency_s / n, if that is longer than busy_s. The last request waits for those of the others,
  /// and takes its own time besides.
  [[nodiscard]] double seconds(double busy_s, double latency_s) const {
    return is_few() ? std::max(busy_s, with_last(busy_s, latency_s)) : busy_s;
  }
  [[nodiscard]] double with_last(double busy_s, double latency_s) const {
    return (1 - 1 / active) * busy_s + latency_s / requests;
  }
  /// Of N^2 requests or more, the last one does not matter: where with_last is more than busy_s, latency_s / N is, too.
  [[nodiscard]] bool is_few() const { return requests > 0 && requests < active * active; }
};
[[nodiscard]] Concurrency concurrency_of(const Servers& servers, double requests);

/// Returns the time in which all requests end: that of the busiest resource (Concurrency::seconds), or latency_s / N if
/// that is longer. With many requests these are the asymptotic bounds of a closed loop of p processes
/// (docs/references.md#operational-analysis), with one request its latency.
[[nodiscard]] double busiest_s(const Servers& servers, const Load& load);

/// As busiest_s, if other regions keep all processes, and the servers of each class evenly, busy: with the mean loads.
[[nodiscard]] double mean_busiest_s(const Servers& servers, const Load& load);

/// Adds `times` the load of region `region`, whose first stripes lie on server `region` modulo count of each class, to
/// the storage time of each server (seconds[2 * server]) and to its network time (seconds[2 * server + 1]).
void add_to_servers(const Servers& servers, std::uint32_t region, const Load& load, double times,
                    std::span<double> seconds);

/// Adds `times` the load `more`, of the same region.
void add_load(const Servers& servers, Load& to, const Load& more, double times);

/// How requests to different regions meet. spread: all regions are used at the same time, and begin at different
/// servers (StripeMap's rotation by the region's number), so the loads of each server add up. together: at any time all
/// processes use one region, so the regions' busiest_s add up.
enum class Contention { spread, together };

/// Returns the predicted time of all regions' requests, one Load for each region, in their order.
[[nodiscard]] double loaded_seconds(const Servers& servers, std::span<const Load> regions, Contention contention);

}  // namespace iosig
