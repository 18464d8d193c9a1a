#include "iosig/cost/striping.h"

#include <algorithm>
#include <numeric>

#include "iosig/base/units.h"

namespace iosig {
namespace {

constexpr double uneven = 1.02;             ///< the busiest server of a class against its mean
constexpr std::uint64_t many_periods = 16;  ///< of which the last, incomplete one does not matter

double node_count(const Servers& servers) {
  return std::max(1.0, static_cast<double>(servers.processes) / servers.processes_per_node);
}

/// The time of the busiest resource, which is a server for `server_s`.
double longest_s(const Servers& servers, const Load& load, double server_s) {
  const Concurrency at_a_time = concurrency_of(servers, load.requests);
  const double busy_s = std::max(server_s, load.client_s / at_a_time.nodes);
  return std::max(at_a_time.seconds(busy_s, load.latency_s), load.latency_s / at_a_time.active);
}

/// Sums over the requests of the groups, server by server.
class LoadSum {
 public:
  LoadSum(const Servers& servers, const Stripes& stripes, std::uint64_t max_phases)
      : servers_(servers),
        map_(servers, stripes),
        max_phases_(max_phases),
        storage_s_(server_count(servers)),
        network_s_(storage_s_.size()) {
    for (std::uint32_t number = 0; number < servers.classes.size(); ++number)
      class_of_.insert(class_of_.end(), servers.classes[number].count, number);
  }

  void add(const RequestGroup& group) {
    if (group.length == 0 || group.count == 0) return;
    requests_ += static_cast<double>(group.count);
    bytes_ += static_cast<double>(group.count) * static_cast<double>(group.length);
    const std::uint64_t period = map_.period_bytes();
    Places places{group.offset % period, group.stride % period, group.place_count()};
    if (places.step > period - places.step) places = reversed(places);
    const std::uint64_t cycle = places.step == 0 ? 1 : period / std::gcd(places.step, period);
    const double each = static_cast<double>(group.count) / static_cast<double>(places.count);
    if (std::min(cycle, places.count) > max_phases_)
      sample(group, places, each);
    else
      visit(group, places, std::min(cycle, places.count), each);
  }

  [[nodiscard]] Load load() const {
    Load load{
        .classes = {}, .servers = {}, .client_s = 0, .latency_s = latency_s_, .requests = requests_, .bytes = bytes_};
    std::size_t server = 0;
    bool is_even = true;
    for (const ServerClass& each : servers_.classes) {
      ClassLoad& sum = load.classes.emplace_back();
      for (const std::size_t end = server + each.count; server < end; ++server) {
        sum.storage_s = std::max(sum.storage_s, storage_s_[server]);
        sum.network_s = std::max(sum.network_s, network_s_[server]);
        sum.mean_storage_s += storage_s_[server] / each.count;
        sum.mean_network_s += network_s_[server] / each.count;
      }
      is_even = is_even && sum.storage_s <= uneven * sum.mean_storage_s && sum.network_s <= uneven * sum.mean_network_s;
    }
    for (std::uint32_t number = 0; !is_even && number < storage_s_.size(); ++number)
      if (storage_s_[number] > 0) load.servers.push_back({number, storage_s_[number], network_s_[number]});
    load.client_s = bytes_ * servers_.network.s_per_byte / node_count(servers_);
    return load;
  }

 private:
  /// Requests at first + k * step modulo the period, for each k < count.
  struct Places {
    std::uint64_t first = 0, step = 0, count = 0;
  };

  [[nodiscard]] std::uint64_t moved(std::uint64_t from, std::uint64_t by) const {
    const std::uint64_t period = map_.period_bytes();
    return from < period - by ? from + by : from - (period - by);
  }
  [[nodiscard]] std::uint64_t multiplied(std::uint64_t k, std::uint64_t step) const {
    return static_cast<std::uint64_t>(static_cast<__uint128_t>(k) * step % map_.period_bytes());
  }
  [[nodiscard]] Places reversed(const Places& places) const {
    return {moved(places.first, multiplied(places.count - 1, places.step)), map_.period_bytes() - places.step,
            places.count};
  }

  /// Costs the places' `phases` one by one; `each` requests begin at each place.
  void visit(const RequestGroup& group, const Places& places, std::uint64_t phases, double each) {
    const std::uint64_t rounds = places.count / phases, rest = places.count % phases;
    for (std::uint64_t n = 0, at = places.first; n < phases; ++n, at = moved(at, places.step))
      request(at, group, each * static_cast<double>(rounds + (n < rest ? 1 : 0)));
  }

  /// Costs max_phases_ of many phases as if each stood for equally many requests: first those of whole periods, which
  /// load the servers of a class evenly, then those of the rest.
  void sample(const RequestGroup& group, const Places& places, double each) {
    const std::uint64_t period = map_.period_bytes();
    const auto in_period = static_cast<double>(period) / static_cast<double>(places.step);
    const auto periods = static_cast<std::uint64_t>(static_cast<__uint128_t>(places.count) * places.step / period);
    std::uint64_t rest = places.count;
    if (periods > 0) {
      const bool has_rest = periods < many_periods;
      const auto whole = static_cast<std::uint64_t>(static_cast<double>(periods) * in_period);
      if (has_rest)
        rest -= std::min(rest, whole);
      else
        rest = 0;
      sample_period(group, places, each * static_cast<double>(places.count - rest));
    }
    const std::uint64_t first = moved(places.first, multiplied(places.count - rest, places.step));
    const std::uint64_t samples = std::min(rest, max_phases_);
    for (std::uint64_t n = 0; n < samples; ++n)
      request(moved(first, multiplied(sample_of(n, samples, rest), places.step)), group,
              each * static_cast<double>(rest) / static_cast<double>(samples));
  }

  [[nodiscard]] static std::uint64_t sample_of(std::uint64_t n, std::uint64_t samples, std::uint64_t of) {
    return static_cast<std::uint64_t>((static_cast<double>(n) + 0.5) * static_cast<double>(of) /
                                      static_cast<double>(samples));
  }

  /// Costs `requests` at places all over a period.
  void sample_period(const RequestGroup& group, const Places& places, double requests) {
    // All periods together visit each multiple of the grid equally often, in whatever order.
    const std::uint64_t grid = std::gcd(places.step, map_.period_bytes()), phases = map_.period_bytes() / grid;
    std::vector<double> storage(storage_s_.size()), network(storage_s_.size());
    storage.swap(storage_s_);
    network.swap(network_s_);
    for (std::uint64_t n = 0; n < max_phases_; ++n)
      request(moved(places.first, sample_of(n, max_phases_, phases) * grid), group,
              requests / static_cast<double>(max_phases_));
    std::size_t server = 0;
    for (const ServerClass& each : servers_.classes) {
      const std::size_t end = server + each.count;
      const auto mean = [&](const std::vector<double>& of) {
        return std::accumulate(of.begin() + static_cast<std::ptrdiff_t>(server),
                               of.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
               std::max(1U, each.count);
      };
      const double storage_s = mean(storage_s_), network_s = mean(network_s_);
      for (; server < end; ++server) {
        storage[server] += storage_s;
        network[server] += network_s;
      }
    }
    storage_s_.swap(storage);
    network_s_.swap(network);
  }

  void request(std::uint64_t at, const RequestGroup& group, double times) {
    map_.parts(at, group.length, parts_);
    const ServerNetwork& network = servers_.network;
    std::uint64_t most = 0;
    double slowest_s = 0;
    for (const StripePart& part : parts_) {
      const ServiceTime& service = servers_.classes[class_of_[part.server]].service(group.is_write);
      const auto bytes = static_cast<double>(part.bytes);
      const double storage_s = service.startup_s + bytes * service.s_per_byte;
      storage_s_[part.server] += times * storage_s;
      network_s_[part.server] += times * bytes * network.s_per_byte;
      slowest_s = std::max(slowest_s, storage_s);
      most = std::max(most, part.bytes);
    }
    // Table 2 with p = c = 1: the client's link carries all bytes, which is never less than a server's share.
    latency_s_ += times * (static_cast<double>(parts_.size()) * network.connect_s +
                           static_cast<double>(group.length) * network.s_per_byte + slowest_s);
  }

  const Servers& servers_;
  StripeMap map_;
  std::uint64_t max_phases_;
  std::vector<std::uint32_t> class_of_;
  std::vector<double> storage_s_, network_s_;
  double latency_s_ = 0, requests_ = 0, bytes_ = 0;
  std::vector<StripePart> parts_;
};

}  // namespace

Result<void> checked(const Stripes& stripes, const Servers& servers) {
  if (stripes.size() != servers.classes.size())
    return fail(ErrorKind::bad_input, "{} stripe sizes for {} classes of servers: expected one for each",
                stripes.size(), servers.classes.size());
  std::uint64_t period = 0;
  for (std::size_t number = 0; number < stripes.size(); ++number) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(stripes[number], std::uint64_t{servers.classes[number].count}, &bytes) ||
        __builtin_add_overflow(period, bytes, &period) || period > max_bytes)
      return fail(ErrorKind::bad_input, "stripes of {} bytes on each of {} servers: a period above 2^63 - 1 bytes",
                  stripes[number], servers.classes[number].count);
  }
  if (period == 0) return fail(ErrorKind::bad_input, "no server gets a stripe: expected a size above 0 for one class");
  return {};
}

StripeMap::StripeMap(const Servers& servers, const Stripes& stripes, std::uint32_t rotation) {
  std::uint32_t first = 0;
  for (std::size_t number = 0; number < servers.classes.size(); ++number) {
    const std::uint32_t count = servers.classes[number].count;
    for (std::uint32_t n = 0; n < count && stripes[number] > 0; ++n) {
      holders_.push_back({first + (n + rotation % count) % count, period_, stripes[number]});
      period_ += stripes[number];
    }
    first += count;
  }
}

void StripeMap::parts(std::uint64_t offset, std::uint64_t length, std::vector<StripePart>& parts) const {
  parts.clear();
  if (length == 0) return;
  // A division takes as long as all the rest.
  const std::uint64_t round = offset < period_ ? 0 : offset / period_, at = offset - round * period_;
  auto holder =
      static_cast<std::size_t>(std::ranges::upper_bound(holders_, at, {}, &Holder::start) - holders_.begin() - 1);
  const std::uint64_t whole = length < period_ ? 0 : length / period_;
  std::uint64_t left = length - whole * period_, within = at - holders_[holder].start, turn = round;
  for (std::size_t n = 0; n < holders_.size() && (whole > 0 || left > 0); ++n) {
    const Holder& each = holders_[holder];
    const std::uint64_t some = std::min(left, each.stripe - within);
    left -= some;
    parts.push_back({each.server, turn * each.stripe + within, whole * each.stripe + some});
    within = 0;
    if (++holder == holders_.size()) {
      holder = 0;
      ++turn;
    }
  }
  parts.front().bytes += left;  // the range ends in the stripe that it begins in, one period later
}

std::uint64_t StripeMap::bytes_on(std::uint32_t server, std::uint64_t length) const {
  for (const Holder& each : holders_)
    if (each.server == server) {
      const std::uint64_t rest = length % period_;
      return length / period_ * each.stripe + (rest > each.start ? std::min(rest - each.start, each.stripe) : 0);
    }
  return 0;
}

std::vector<std::uint64_t> bytes_on_classes(const Servers& servers, const Stripes& stripes, std::uint64_t length) {
  std::vector<std::uint64_t> bytes;
  std::uint64_t period = 0;
  for (std::size_t number = 0; number < stripes.size(); ++number)
    period += stripes[number] * servers.classes[number].count;
  std::uint64_t start = 0;  // of the class's first server, which holds the most
  for (std::size_t number = 0; number < stripes.size(); ++number) {
    const std::uint64_t rest = length % period;
    const bool has_any = servers.classes[number].count > 0;
    bytes.push_back(!has_any ? 0
                             : length / period * stripes[number] +
                                   (rest > start ? std::min(rest - start, stripes[number]) : 0));
    start += stripes[number] * servers.classes[number].count;
  }
  return bytes;
}

RequestCost request_cost(const Servers& servers, const StripeMap& map, const Request& request) {
  std::vector<StripePart> parts;
  map.parts(request.offset, request.length, parts);
  if (parts.empty()) return {};
  std::uint64_t most = 0;
  double slowest_s = 0;
  for (const StripePart& part : parts) {
    const ServiceTime& service = servers.classes[class_of_server(servers, part.server)].service(request.is_write);
    slowest_s = std::max(slowest_s, service.startup_s + static_cast<double>(part.bytes) * service.s_per_byte);
    most = std::max(most, part.bytes);
  }
  const double p = servers.processes, c = servers.processes_per_node;
  return {.connect_s = std::max(p, c * static_cast<double>(parts.size())) * servers.network.connect_s,
          .transfer_s = std::max(c * static_cast<double>(request.length), p * static_cast<double>(most)) *
                        servers.network.s_per_byte,
          .storage_s = p * slowest_s};
}

RequestCost table2_cost(const Servers& servers, std::uint64_t h, std::uint64_t s, std::uint64_t r, bool is_write) {
  const double p = servers.processes, c = servers.processes_per_node, e = servers.network.connect_s;
  const double t = servers.network.s_per_byte, both = server_count(servers);
  const ServiceTime &slow = servers.classes[0].service(is_write), &fast = servers.classes[1].service(is_write);
  const auto bytes_h = static_cast<double>(h), bytes_s = static_cast<double>(s);
  return {.connect_s = p <= c * both ? c * both * e : p * e,
          .transfer_s = std::max(c * static_cast<double>(r) * t, p * bytes_s * t),
          .storage_s =
              p * std::max(slow.startup_s + bytes_h * slow.s_per_byte, fast.startup_s + bytes_s * fast.s_per_byte)};
}

RequestCost table3_cost(const Servers& servers, std::uint64_t r, bool is_write) {
  const double p = servers.processes, c = servers.processes_per_node, e = servers.network.connect_s;
  const double t = servers.network.s_per_byte, m = servers.classes[0].count, bytes = static_cast<double>(r);
  const ServiceTime& slow = servers.classes[0].service(is_write);
  return {.connect_s = p <= c * m ? c * m * e : p * e,
          .transfer_s = std::max(c * bytes * t, p * bytes * t / m),
          .storage_s = p * slow.startup_s + p * (bytes / m) * slow.s_per_byte};
}

Load load_of(const Servers& servers, const Stripes& stripes, std::span<const RequestGroup> groups,
             std::uint64_t max_phases) {
  LoadSum sum(servers, stripes, max_phases);
  for (const RequestGroup& group : groups) sum.add(group);
  return sum.load();
}

Concurrency concurrency_of(const Servers& servers, double requests) {
  const double nodes = node_count(servers), p = servers.processes;
  if (requests <= 0) return {0, p, 1};  // copies are no requests
  const double active = std::min(p, std::max(1.0, requests));
  return {requests, active, std::min(nodes, active) / nodes};
}

double busiest_s(const Servers& servers, const Load& load) {
  double server_s = 0;
  for (const ClassLoad& each : load.classes) server_s = std::max({server_s, each.storage_s, each.network_s});
  return longest_s(servers, load, server_s);
}

double mean_busiest_s(const Servers& servers, const Load& load) {
  double most_s = std::max(load.client_s, load.latency_s / servers.processes);
  for (const ClassLoad& each : load.classes) most_s = std::max({most_s, each.mean_storage_s, each.mean_network_s});
  return most_s;
}

void add_to_servers(const Servers& servers, std::uint32_t region, const Load& load, double times,
                    std::span<double> seconds) {
  std::uint32_t first = 0;
  auto next = load.servers.begin();
  for (std::size_t number = 0; number < load.classes.size(); ++number) {
    const std::uint32_t count = servers.classes[number].count;
    const ClassLoad& sum = load.classes[number];
    for (std::uint32_t n = 0; load.servers.empty() && n < count; ++n) {
      seconds[2 * std::size_t{first + n}] += times * sum.mean_storage_s;
      seconds[2 * std::size_t{first + n} + 1] += times * sum.mean_network_s;
    }
    for (; next != load.servers.end() && next->server < first + count; ++next) {
      const std::size_t server = first + (next->server - first + region % count) % count;
      seconds[2 * server] += times * next->storage_s;
      seconds[2 * server + 1] += times * next->network_s;
    }
    first += count;
  }
}

void add_load(const Servers& servers, Load& to, const Load& more, double times) {
  if (!to.servers.empty() || !more.servers.empty()) {
    std::vector<double> seconds(2 * std::size_t{server_count(servers)});
    add_to_servers(servers, 0, to, 1, seconds);
    add_to_servers(servers, 0, more, times, seconds);
    to.servers.clear();
    for (std::uint32_t server = 0; 2 * std::size_t{server} < seconds.size(); ++server)
      if (seconds[2 * std::size_t{server}] > 0)
        to.servers.push_back({server, seconds[2 * std::size_t{server}], seconds[2 * std::size_t{server} + 1]});
  }
  to.classes.resize(std::max(to.classes.size(), more.classes.size()));
  for (std::size_t number = 0; number < more.classes.size(); ++number) {
    ClassLoad& sum = to.classes[number];
    const ClassLoad& each = more.classes[number];
    sum.storage_s += times * each.storage_s;
    sum.network_s += times * each.network_s;
    sum.mean_storage_s += times * each.mean_storage_s;
    sum.mean_network_s += times * each.mean_network_s;
  }
  to.client_s += times * more.client_s;
  to.latency_s += times * more.latency_s;
  to.requests += times * more.requests;
  to.bytes += times * more.bytes;
}

double loaded_seconds(const Servers& servers, std::span<const Load> regions, Contention contention) {
  double sum_s = 0;
  Load all;
  std::vector<double> seconds(2 * std::size_t{server_count(servers)});
  for (std::uint32_t n = 0; n < regions.size(); ++n) {
    const Load& region = regions[n];
    sum_s += busiest_s(servers, region);
    all.client_s += region.client_s;
    all.latency_s += region.latency_s;
    all.requests += region.requests;
    add_to_servers(servers, n, region, 1, seconds);
  }
  if (contention == Contention::together) return sum_s;
  return longest_s(servers, all, seconds.empty() ? 0 : *std::ranges::max_element(seconds));
}

}  // namespace iosig
