// The servers of a parallel file system: classes of equal servers, their network, and their clients.
//
// Plain data, no I/O. Source: docs/references.md#h2dp Table 1; m, n = `count` of its two classes, p = `processes`,
// c = `processes_per_node`, e = `connect_s`, t = `s_per_byte` of the network, alpha = `startup_s`, beta = `s_per_byte`.
// Ours: any number of classes; reads and writes apart for each class; a capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

inline constexpr std::uint32_t max_servers = 1'000'000;

/// One direction of a server's storage: a sub-request of b bytes takes startup_s + b * s_per_byte.
struct ServiceTime {
  double startup_s = 0;   ///< finite, >= 0
  double s_per_byte = 0;  ///< finite, > 0: the reciprocal of a bandwidth

  bool operator==(const ServiceTime&) const = default;
};

/// Equal servers. Servers are numbered from 0 on, class after class.
struct ServerClass {
  std::string name;         ///< "hdd"; for messages
  std::uint32_t count = 0;  ///< 0: the system has none of these
  ServiceTime read, write;
  std::optional<std::uint64_t> capacity_bytes;  ///< of each server, for the planned files; absent: enough for all

  [[nodiscard]] const ServiceTime& service(bool is_write) const { return is_write ? write : read; }
  bool operator==(const ServerClass&) const = default;
};

struct ServerNetwork {
  double connect_s = 0;   ///< time to establish one connection, finite, >= 0
  double s_per_byte = 0;  ///< of each server's and each client node's link, finite, >= 0; 0: never the limit

  bool operator==(const ServerNetwork&) const = default;
};

struct Servers {
  std::vector<ServerClass> classes;  ///< the paper: HServers, then SServers
  ServerNetwork network;
  std::uint32_t processes = 1;           ///< that issue requests, each one at a time
  std::uint32_t processes_per_node = 1;  ///< on one client node

  bool operator==(const Servers&) const = default;
};

[[nodiscard]] std::uint32_t server_count(const Servers& servers);

/// Returns the class of server `server` < server_count().
[[nodiscard]] std::uint32_t class_of_server(const Servers& servers, std::uint32_t server);

/// Returns nothing, or `bad_input` with the class and its fault: no server at all, more than max_servers, a time that
/// is negative or no number, a transfer time of 0 (a speed without limit), no process.
[[nodiscard]] Result<void> checked(const Servers& servers);

}  // namespace iosig
