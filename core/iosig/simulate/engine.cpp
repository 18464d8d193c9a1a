// The events of the engine, and what happens at each.
//
// There are three kinds of events. `send`: a request reaches the servers (a read) or the client's link (a write).
// `link`: a part reaches the second link of its way. `disk`: a written part reaches its disk. All that a first-in,
// first-out station needs is the time at which it is free again: whoever asks first is served first, and events are in
// the order of time. A request's end is known when its last part has reached its last station, so the client's next
// request is asked for by an event `next` at that time.
#include "iosig/simulate/engine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <utility>

#include "iosig/base/mix.h"
#include "iosig/simulate/check.h"

namespace iosig::simulate {
namespace {

constexpr std::uint32_t no_region = UINT32_MAX;

enum class EventKind : std::uint8_t { next, send, link, disk };

struct Event {
  double at_s = 0;
  double passed_s = 0;       ///< `link`: when the first link has passed the part
  std::uint64_t number = 0;  ///< of the event: ties are in the order of their causes
  std::uint64_t bytes = 0;
  std::uint32_t client = 0;
  std::uint32_t server = 0;
  EventKind kind = EventKind::next;
};

struct IsLater {
  bool operator()(const Event& one, const Event& other) const {
    return one.at_s != other.at_s ? one.at_s > other.at_s : one.number > other.number;
  }
};

/// A station serves from the later of its arrival and the time at which it is free.
struct Station {
  double free_s = 0;
  double begin(double arrival_s, double service_s) {
    const double begin_s = std::max(arrival_s, free_s);
    free_s = begin_s + service_s;
    return begin_s;
  }
};

struct ServerState {
  Station disk, in, out;
  std::uint32_t last_region = no_region;
  std::uint64_t draws = 0;
};

struct NodeState {
  Station in, out;
};

struct ClientState {
  ClientRequest request;
  double sent_s = 0, ended_s = 0;
  std::uint32_t parts_left = 0;
};

class Engine {
 public:
  Engine(const System& system, const Source& source) : system_(system), source_(source) {
    servers_.resize(system.servers.size());
    nodes_.resize(system.nodes.size());
    clients_.resize(system.clients.size());
    totals_.servers.resize(system.servers.size());
    for (const Client& client : system.clients) in_step_ += client.is_in_step ? 1 : 0;
  }

  Result<Totals> run() {
    waiting_.reserve(clients_.size());
    for (std::uint32_t client = 0; client < clients_.size(); ++client) add({.client = client, .kind = EventKind::next});
    while (!events_.empty() && !wrong_) {
      const Event event = events_.top();
      events_.pop();
      happen(event);
    }
    if (wrong_) return pass_on(*std::move(wrong_));
    return std::move(totals_);
  }

 private:
  void add(Event event) {
    event.number = ++number_;
    events_.push(event);
  }

  void happen(const Event& event) {
    switch (event.kind) {
      case EventKind::next: return ask(event.client, event.at_s);
      case EventKind::send: return send(event.client, event.at_s);
      case EventKind::link: return pass_second_link(event);
      case EventKind::disk: return write(event);
    }
  }

  void ask(std::uint32_t client, double now_s) {
    ClientState& state = clients_[client];
    if (!source_(client, now_s, state.request)) {
      if (system_.clients[client].is_in_step) {
        --in_step_;
        begin_round(now_s);
      }
      return;
    }
    if (!is_sound(client)) return;
    state.sent_s = state.ended_s = now_s + state.request.think_s;
    add({.at_s = state.sent_s + system_.latency_s, .client = client, .kind = EventKind::send});
  }

  bool is_sound(std::uint32_t client) {
    const ClientRequest& request = clients_[client].request;
    if (request.layout < system_.layouts.size() && request.bytes > 0 && request.bytes < bytes_limit &&
        request.offset < bytes_limit && request.think_s >= 0 && std::isfinite(request.think_s))
      return true;
    wrong_ = Error{
        ErrorKind::usage,
        fmt::format("client {}: request of {} bytes at {} with layout {}, {} s later: expected 1 to 2^62 "
                    "bytes, below 2^62, one of {} layouts, and at least 0 s",
                    client, request.bytes, request.offset, request.layout, request.think_s, system_.layouts.size())};
    return false;
  }

  /// The parts of a request: of a read on their disks and on to the servers' links, of a write on the client's link.
  void send(std::uint32_t client, double now_s) {
    ClientState& state = clients_[client];
    const ClientRequest& request = state.request;
    system_.layouts[request.layout].split(request.offset, request.bytes, parts_);
    state.parts_left = static_cast<std::uint32_t>(parts_.size());
    const std::uint32_t node = system_.clients[client].node;
    for (const Layout::Part& part : parts_) {
      const auto bytes = static_cast<double>(part.bytes);
      Event event{.bytes = part.bytes, .client = client, .server = part.server, .kind = EventKind::link};
      if (request.is_write) {
        const double service_s = bytes / system_.nodes[node].link_bytes_per_s;
        event.at_s = nodes_[node].out.begin(now_s, service_s);
        event.passed_s = event.at_s + service_s;
      } else {
        const double read_s = serve(part.server, request, part.bytes, now_s);
        const double service_s = bytes / system_.servers[part.server].link_bytes_per_s;
        event.at_s = servers_[part.server].out.begin(read_s, service_s);
        event.passed_s = event.at_s + service_s;
        totals_.servers[part.server].link_s += service_s;
      }
      add(event);
    }
  }

  void pass_second_link(const Event& event) {
    const auto bytes = static_cast<double>(event.bytes);
    if (!clients_[event.client].request.is_write) {
      const std::uint32_t node = system_.clients[event.client].node;
      const double service_s = bytes / system_.nodes[node].link_bytes_per_s;
      const double begin_s = nodes_[node].in.begin(event.at_s, service_s);
      return end_part(event.client, std::max(begin_s + service_s, event.passed_s));
    }
    const double service_s = bytes / system_.servers[event.server].link_bytes_per_s;
    const double begin_s = servers_[event.server].in.begin(event.at_s, service_s);
    totals_.servers[event.server].link_s += service_s;
    Event arrival = event;
    arrival.at_s = std::max(begin_s + service_s, event.passed_s);
    arrival.kind = EventKind::disk;
    add(arrival);
  }

  void write(const Event& event) {
    end_part(event.client, serve(event.server, clients_[event.client].request, event.bytes, event.at_s));
  }

  /// Returns when the disk has served the part.
  double serve(std::uint32_t server, const ClientRequest& request, std::uint64_t bytes, double now_s) {
    ServerState& state = servers_[server];
    const DiskCosts& costs = request.is_write ? system_.servers[server].write : system_.servers[server].read;
    const bool is_near = state.last_region == request.region;
    state.last_region = request.region;
    const double start_s = is_near ? costs.near_start_s : costs.start_s * (1 + costs.spread * draw(server));
    const double service_s = start_s + static_cast<double>(bytes) / costs.bytes_per_s;
    ServerTotals& totals = totals_.servers[server];
    ++totals.parts;
    totals.bytes += bytes;
    totals.disk_s += service_s;
    return state.disk.begin(now_s, service_s) + service_s;
  }

  /// Uniform from -1 to 1.
  double draw(std::uint32_t server) {
    const std::uint64_t bits = mixed(mixed(mixed(system_.seed) + server) + servers_[server].draws++);
    return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
  }

  void end_part(std::uint32_t client, double now_s) {
    ClientState& state = clients_[client];
    state.ended_s = std::max(state.ended_s, now_s);
    const Client& told = system_.clients[client];
    totals_.parts += told.is_counted ? 1 : 0;
    if (--state.parts_left > 0) return;
    if (told.is_counted) count(state);
    if (!told.is_in_step) return add({.at_s = state.ended_s, .client = client, .kind = EventKind::next});
    waiting_.push_back(client);
    round_end_s_ = std::max(round_end_s_, state.ended_s);
    begin_round(round_end_s_);
  }

  void count(const ClientState& state) {
    ++totals_.requests;
    totals_.bytes += state.request.bytes;
    totals_.latency_s += state.ended_s - state.sent_s;
    totals_.end_s = std::max(totals_.end_s, state.ended_s);
  }

  /// Lets all clients in step go on, if they have all ended their requests.
  void begin_round(double now_s) {
    if (waiting_.size() < in_step_ || waiting_.empty()) return;
    std::ranges::sort(waiting_);
    for (const std::uint32_t client : waiting_) add({.at_s = now_s, .client = client, .kind = EventKind::next});
    waiting_.clear();
  }

  const System& system_;
  const Source& source_;
  std::priority_queue<Event, std::vector<Event>, IsLater> events_;
  std::vector<ServerState> servers_;
  std::vector<NodeState> nodes_;
  std::vector<ClientState> clients_;
  std::vector<Layout::Part> parts_;
  std::vector<std::uint32_t> waiting_;  ///< clients in step whose requests have ended
  std::size_t in_step_ = 0;             ///< clients in step that have not ended
  double round_end_s_ = 0;
  std::uint64_t number_ = 0;
  std::optional<Error> wrong_;
  Totals totals_;
};

}  // namespace

Result<Totals> run(const System& system, const Source& source) {
  if (auto sound = check(system); !sound) return pass_on(sound.error());
  return Engine(system, source).run();
}

}  // namespace iosig::simulate
