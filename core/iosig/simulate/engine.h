// Simulates clients that read and write striped files on servers of unlike speed: discrete events of disks, network
// links and clients.
//
// A request is split by its layout into at most one part for each server. Each disk serves its parts one at a time,
// first in, first out; so does each link. A part takes
//
//   read:   latency, then the disk (start-up, bytes), then the server's and the client's link
//   write:  latency, then the client's and the server's link, then the disk (start-up, bytes)
//
// A link has two directions that do not disturb each other (full duplex). Two links in a row are cut-through: the
// second begins when the first begins, and a part has passed when the slower of them has passed it. A disk and a link
// in a row are store-and-forward. Alone in the system, a read of b bytes of one server therefore takes exactly
// latency + start-up + b / disk + b / slower link. A request ends when its last part ends; its client then sends its
// next one (closed loop). What is left out: caches, the order that a disk's own queue would choose, congestion inside
// the switch, and the processors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::simulate {

/// What one direction of a disk takes for a part: a start-up, then its bytes at a constant rate.
struct DiskCosts {
  double start_s = 0;       ///< mean start-up if the disk's previous part was of another region
  double near_start_s = 0;  ///< start-up if it was of the same region; always this
  double spread = 0;        ///< the former is uniform from (1 - spread) to (1 + spread) times its mean; 0 to 1
  double bytes_per_s = 1;   ///< > 0
};

/// A server: one disk and one link.
struct Server {
  DiskCosts read, write;
  double link_bytes_per_s = 1;  ///< > 0; of each direction
};

/// A client node: one link, shared by the clients on it.
struct Node {
  double link_bytes_per_s = 1;  ///< > 0; of each direction
};

/// One server's turn in a layout.
struct Stripe {
  std::uint32_t server = 0;
  std::uint64_t bytes = 0;  ///< 0: the server has none of the data
};

/// Stripes in their order, repeated over the region from its first byte on (PVFS's variable strips).
class Layout {
 public:
  /// Stripes of 0 bytes are dropped. At least one must remain, each server must occur at most once, and the sum of the
  /// stripes must be below 2^62: the engine reports what is not so.
  explicit Layout(std::span<const Stripe> stripes);

  struct Part {
    std::uint32_t server = 0;
    std::uint64_t bytes = 0;
  };
  /// Replaces `parts` by the bytes that each server gets of the `length` bytes at `offset` of a region, without servers
  /// that get none. The sum is `length`. Takes a time that depends on the servers, not on `length`.
  void split(std::uint64_t offset, std::uint64_t length, std::vector<Part>& parts) const;

  [[nodiscard]] std::span<const Stripe> stripes() const { return stripes_; }
  [[nodiscard]] std::uint64_t period_bytes() const { return period_; }

 private:
  std::vector<Stripe> stripes_;
  std::vector<std::uint64_t> begins_;  ///< of each stripe in the period
  std::uint64_t period_ = 0;
};

struct ClientRequest {
  std::uint32_t layout = 0;  ///< number in System::layouts
  std::uint32_t region = 0;  ///< for the disks' start-up
  std::uint64_t offset = 0;  ///< in the region
  std::uint64_t bytes = 0;   ///< > 0
  bool is_write = false;
  double think_s = 0;  ///< at least 0; the request is sent that much later than it was asked for
};

struct Client {
  std::uint32_t node = 0;   ///< number in System::nodes
  bool is_in_step = false;  ///< sends its next request when those of all clients in step have ended (a round)
  bool is_counted = true;   ///< false: its requests load the system, but do not enter the totals (data on the move)
};

struct System {
  std::vector<Server> servers;
  std::vector<Node> nodes;
  std::vector<Client> clients;
  std::vector<Layout> layouts;
  double latency_s = 0;    ///< of the network, once for each part
  std::uint64_t seed = 1;  ///< of the start-ups
};

/// Sets the next request of `client` at the time `now_s`. False: the client has ended. Called in the order of time; at
/// equal times in the order in which the earlier requests ended, at the start in the order of the clients.
using Source = std::function<bool(std::uint32_t client, double now_s, ClientRequest& next)>;

struct ServerTotals {
  std::uint64_t parts = 0, bytes = 0;  ///< of all clients
  double disk_s = 0;                   ///< start-ups and transfers, at any time
  double link_s = 0;                   ///< of both directions together
};

struct Totals {
  double end_s = 0;                       ///< when the last counted request ended
  std::uint64_t requests = 0, parts = 0;  ///< counted clients'
  std::uint64_t bytes = 0;                ///< counted clients'
  double latency_s = 0;                   ///< sum over the counted requests, from sent to ended
  std::vector<ServerTotals> servers;
  [[nodiscard]] double bytes_per_s() const { return end_s > 0 ? static_cast<double>(bytes) / end_s : 0; }
};

/// Runs until every client has ended.
///
/// Deterministic: equal inputs give equal results on every machine with IEEE doubles. Simultaneous events happen in the
/// order in which they were caused. The start-ups of a disk are drawn by SplitMix64 (base/mix) from the seed, the
/// number of the server, and a count of that disk's parts, so a disk has the same luck under every policy.
/// Fails with `usage`, naming the number that is wrong: no server, node or client; a rate that is not positive and
/// finite; a time that is negative or not finite; a spread outside 0 to 1; a layout as above or with an unknown server;
/// a request of 0 bytes, past 2^62, with an unknown layout, or with a time to think that is negative or not finite.
[[nodiscard]] Result<Totals> run(const System& system, const Source& source);

}  // namespace iosig::simulate
