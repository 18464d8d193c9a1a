#include "iosig/cost/striping.h"

#include <algorithm>
#include <numeric>

#include "iosig/base/units.h"

namespace iosig {
namespace {

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
    const auto count = static_cast<double>(group.count);
    requests_ += count;
    bytes_ += count * static_cast<double>(group.length);
    const std::uint64_t period = map_.period_bytes(), step = group.stride % period;
    const std::uint64_t cycle = step == 0 ? 1 : period / std::gcd(step, period);
    const std::uint64_t phases = group.is_scattered ? cycle : std::min(cycle, group.count);
    const std::uint64_t first = group.offset % period;
    if (phases > max_phases_) {
      sample(group, phases, step);
      return;
    }
    const std::uint64_t rounds = group.count / phases, rest = group.count % phases;
    for (std::uint64_t n = 0, at = first; n < phases; ++n, at = at < period - step ? at + step : at - (period - step))
      request(
          at, group,
          group.is_scattered ? count / static_cast<double>(phases) : static_cast<double>(rounds + (n < rest ? 1 : 0)));
  }

  [[nodiscard]] Load load() const {
    Load load{.classes = {}, .client_s = 0, .latency_s = latency_s_, .requests = requests_, .bytes = bytes_};
    std::size_t server = 0;
    for (const ServerClass& each : servers_.classes) {
      ClassLoad& sum = load.classes.emplace_back();
      for (const std::size_t end = server + each.count; server < end; ++server) {
        sum.storage_s = std::max(sum.storage_s, storage_s_[server]);
        sum.network_s = std::max(sum.network_s, network_s_[server]);
        sum.mean_storage_s += storage_s_[server] / each.count;
        sum.mean_network_s += network_s_[server] / each.count;
      }
    }
    const double nodes = std::max(1.0, static_cast<double>(servers_.processes) / servers_.processes_per_node);
    load.client_s = bytes_ * servers_.network.s_per_byte / nodes;
    return load;
  }

 private:
  /// Costs max_phases_ of the group's many phases, evenly distributed, as if each stood for equally many requests.
  void sample(const RequestGroup& group, std::uint64_t phases, std::uint64_t step) {
    const std::uint64_t period = map_.period_bytes();
    const std::uint64_t grid = std::gcd(step, period), first = group.offset % period;
    std::vector<double> storage(storage_s_.size()), network(storage_s_.size());
    storage.swap(storage_s_);
    network.swap(network_s_);
    const bool is_whole_cycle = group.count >= period / grid || group.is_scattered;
    for (std::uint64_t n = 0; n < max_phases_; ++n) {
      const auto k = static_cast<std::uint64_t>((static_cast<double>(n) + 0.5) * static_cast<double>(phases) /
                                                static_cast<double>(max_phases_));
      // A whole cycle visits each multiple of the grid once, in whatever order.
      const std::uint64_t moved = is_whole_cycle ? k * grid : multiplied(k, step, period);
      request(first < period - moved ? first + moved : first - (period - moved), group,
              static_cast<double>(group.count) / static_cast<double>(max_phases_));
    }
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

  [[nodiscard]] static std::uint64_t multiplied(std::uint64_t k, std::uint64_t step, std::uint64_t period) {
    return static_cast<std::uint64_t>(static_cast<__uint128_t>(k) * step % period);
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

double busiest_s(const Servers& servers, const Load& load) {
  double most_s = std::max(load.client_s, load.latency_s / servers.processes);
  for (const ClassLoad& each : load.classes) most_s = std::max({most_s, each.storage_s, each.network_s});
  return most_s;
}

double loaded_seconds(const Servers& servers, std::span<const Load> regions, Contention contention) {
  double sum_s = 0;
  Load all;
  all.classes.resize(servers.classes.size());
  for (const Load& region : regions) {
    sum_s += busiest_s(servers, region);
    all.client_s += region.client_s;
    all.latency_s += region.latency_s;
    for (std::size_t number = 0; number < region.classes.size(); ++number) {
      all.classes[number].storage_s += region.classes[number].mean_storage_s;
      all.classes[number].network_s += region.classes[number].mean_network_s;
    }
  }
  return contention == Contention::together ? sum_s : busiest_s(servers, all);
}

}  // namespace iosig
