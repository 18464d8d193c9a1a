// TCP connections with time limits, for the probe of the network: whatever a peer does, each call ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig::network {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

[[nodiscard]] Deadline after(double seconds);

/// Addresses of one host, as text ("10.0.0.7", "fd00::7"), and a port.
struct Endpoint {
  std::vector<std::string> addresses;  ///< in the order in which they are tried
  std::uint16_t port = 0;
};

/// This host's addresses: IPv4 before IPv6, those of the loopback interface last. Without IPv6 addresses that hold for
/// one link only (fe80::).
[[nodiscard]] std::vector<std::string> own_addresses();
[[nodiscard]] bool is_loopback(std::string_view address);

/// One connection. Methods fail with `system` if the peer is gone or the time is up.
class Connection {
 public:
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}

  /// Tries each address, at most 2 s each.
  [[nodiscard]] static Result<Connection> to(const Endpoint& peer, Deadline deadline);

  [[nodiscard]] Result<void> write(std::string_view bytes, Deadline deadline);
  /// Fills `bytes`.
  [[nodiscard]] Result<void> read(std::span<char> bytes, Deadline deadline);
  /// Returns a line of at most 64 KB, without its end.
  [[nodiscard]] Result<std::string> read_line(Deadline deadline);
  /// The address of this end; empty if it cannot be told.
  [[nodiscard]] std::string own_address() const;
  /// Whether the peer has closed its end, even if it sent something before that was not read.
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  Fd socket_;
};

class Listener {
 public:
  /// Takes a free port on all interfaces, for IPv4 and, if this host has it, IPv6.
  [[nodiscard]] static Result<Listener> open();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Result<Connection> accept(Deadline deadline) const;

 private:
  Fd socket_;
  std::uint16_t port_ = 0;
};

}  // namespace iosig::network
