// Messages are lines. A member of the group tells rank 0 about itself, then obeys:
//
//   member -> rank 0    iosig-network 1 TOKEN RANK SIZE NODE HOST PORT ADDRESS,...
//   rank 0 -> member    welcome | refused WHY | serve | measure REPEATS LIMIT PORT ADDRESS,... | end | stop WHY
//   member -> rank 0    ready | busy | startup SECONDS... | transfer SECONDS... | failed WHY | served
//
// Between two members: the token, then `p` (answered by one byte) and `b` with eight bytes of length (answered when
// that many bytes have come).
#include "iosig/storage/network_probe.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/storage/hardware.h"
#include "iosig/storage/network_link.h"

namespace iosig {
namespace {

using network::after;
using network::Connection;
using network::Deadline;
using network::Endpoint;
using network::Listener;

constexpr std::string_view greeting = "iosig-network 1";
constexpr std::size_t passes = 20, block_bytes = std::size_t{256} << 10U;
constexpr double hello_s = 5;
constexpr std::chrono::milliseconds between_tries{50};
constexpr double between_questions_s = 0.2;  ///< whether rank 0 is interrupted
constexpr double until_heard_s = 1;          ///< that a process has ended, after another one was disturbed by it

std::string meeting_file(const NetworkGroup& group) {
  std::string job = group.job;
  for (char& each : job)
    if (std::isalnum(static_cast<unsigned char>(each)) == 0) each = '_';
  return fmt::format("{}/.iosig-network{}{}", group.directory, job.empty() ? "" : "-", job);
}

std::string new_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Processes with the same node share a network interface.
std::string node_name() {
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/net", space.data(), space.size());
  return fmt::format("{}/{}", boot_id().empty() ? host_name() : boot_id(),
                     std::string(space.data(), length > 0 ? static_cast<std::size_t>(length) : 0));
}

/// Without empty parts.
std::vector<std::string> parts_of(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, at))
    if (!part.empty()) parts.emplace_back(part);
  return parts;
}

template <class Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

Result<void> say(Connection& to, std::string_view line, Deadline deadline) {
  return to.write(fmt::format("{}\n", line), deadline);
}

// The exchange of two members.

double elapsed_s(network::Clock::time_point start) {
  return std::chrono::duration<double>(network::Clock::now() - start).count();
}

/// Answers one peer until it closes the connection.
Result<void> serve(const Listener& listener, const std::string& token, double timeout_s) {
  auto peer = listener.accept(after(timeout_s));
  if (!peer) return pass_on(peer.error());
  const auto said = peer->read_line(after(hello_s));
  if (!said || *said != token) return fail(ErrorKind::system, "another program connected");
  std::vector<char> block(block_bytes);
  for (char what = 0; peer->read({&what, 1}, after(timeout_s));) {
    std::uint64_t left = 0;
    if (what == 'b') {
      std::array<char, sizeof left> bytes{};
      if (auto got = peer->read(bytes, after(timeout_s)); !got) return got;
      std::memcpy(&left, bytes.data(), sizeof left);
    }
    while (left > 0) {
      const std::size_t part = std::min<std::uint64_t>(left, block.size());
      if (auto got = peer->read({block.data(), part}, after(timeout_s)); !got) return got;
      left -= part;
    }
    if (auto answered = peer->write({&what, 1}, after(timeout_s)); !answered) return answered;
  }
  return {};
}

Result<void> round_trip(Connection& peer, double timeout_s) {
  char answer = 0;
  if (auto sent = peer.write("p", after(timeout_s)); !sent) return sent;
  return peer.read({&answer, 1}, after(timeout_s));
}

Result<void> transfer(Connection& peer, std::uint64_t blocks, const std::vector<char>& block, double timeout_s) {
  const std::uint64_t bytes = blocks * block.size();
  std::array<char, 1 + sizeof bytes> head{'b'};
  std::memcpy(head.data() + 1, &bytes, sizeof bytes);
  if (auto sent = peer.write({head.data(), head.size()}, after(timeout_s)); !sent) return sent;
  for (std::uint64_t n = 0; n < blocks; ++n)
    if (auto sent = peer.write({block.data(), block.size()}, after(timeout_s)); !sent) return sent;
  char answer = 0;
  return peer.read({&answer, 1}, after(timeout_s));
}

struct Samples {
  std::vector<double> startup_s, s_per_byte;
};

/// Measures against the member at `server`; calls `alive` after each pass.
Result<Samples> measure(const Endpoint& server, const std::string& token, const NetworkProbeOptions& options,
                        const std::function<Result<void>()>& alive) {
  auto peer = Connection::to(server, after(options.timeout_s));
  if (!peer) return pass_on(peer.error());
  if (auto said = say(*peer, token, after(options.timeout_s)); !said) return pass_on(said.error());
  const std::uint64_t each = std::max<std::uint64_t>(1, options.repeats / passes);
  const std::vector<char> block(block_bytes, 'x');
  Samples samples;
  const auto repeat = [&](std::vector<double>& into, const auto& once) -> Result<void> {
    if (auto warm = once(); !warm) return warm;  // the first pass does not count: buffers and windows grow
    const auto began = network::Clock::now();
    while (into.size() < passes && (into.size() < min_passes || elapsed_s(began) < options.measured_s)) {
      const auto start = network::Clock::now();
      if (auto done = once(); !done) return done;
      into.push_back(elapsed_s(start));
      if (auto told = alive(); !told) return told;
    }
    return {};
  };
  const auto trips = [&]() -> Result<void> {
    for (std::uint64_t n = 0; n < each; ++n)
      if (auto done = round_trip(*peer, options.timeout_s); !done) return done;
    return {};
  };
  if (auto done = repeat(samples.startup_s, trips); !done) return pass_on(done.error());
  for (double& sample : samples.startup_s) sample /= static_cast<double>(each);
  const double startup_s = estimate_of(samples.startup_s).mean;
  if (auto done = repeat(samples.s_per_byte, [&] { return transfer(*peer, each, block, options.timeout_s); }); !done)
    return pass_on(done.error());
  const double bytes = static_cast<double>(each * block.size());
  // A start-up that took more than half of it, on a busy machine, was not part of it.
  for (double& sample : samples.s_per_byte) sample = std::max(sample - startup_s, sample / 2) / bytes;
  return samples;
}

// The part of each member.

class Member {
 public:
  Member(const NetworkGroup& group, const NetworkProbeOptions& options) : group_(group), options_(options) {}

  /// Comes to rank 0, which `known` leads to, or else the meeting file; obeys until it says that all is done. Once
  /// `stop` is requested, does not try again to come.
  Result<void> run(const Endpoint* known, const std::string& token, const std::stop_token& stop) {
    auto listener = Listener::open();
    if (!listener) return pass_on(listener.error());
    const Deadline deadline = after(options_.timeout_s);
    std::string why = fmt::format("there is no '{}'", printable(meeting_file(group_)));
    for (;;) {
      auto lead = known != nullptr ? std::optional<std::pair<Endpoint, std::string>>({*known, token}) : read_meeting();
      if (lead) {
        token_ = lead->second;
        auto came = come(lead->first, *listener, deadline);
        if (came) return obey(*came, *listener);
        why = came.error().message;
        if (came.error().kind == ErrorKind::usage) return pass_on(came.error());
      }
      if (network::Clock::now() > deadline || stop.stop_requested())
        return fail(ErrorKind::system, "rank {}: rank 0 did not come within {}: {}", group_.rank,
                    about_seconds(options_.timeout_s), why);
      std::this_thread::sleep_for(between_tries);
    }
  }

 private:
  std::optional<std::pair<Endpoint, std::string>> read_meeting() const {
    const auto text = read_file(meeting_file(group_), 1U << 16U);
    if (!text) return {};
    const auto words = parts_of(text->substr(0, text->find('\n')), ' ');
    Endpoint lead;
    if (words.size() != 5 || fmt::format("{} {}", words[0], words[1]) != greeting) return {};
    if (!read_number(words[3], lead.port)) return {};
    lead.addresses = parts_of(words[4], ',');
    return std::pair{lead, words[2]};
  }

  Result<Connection> come(const Endpoint& lead, const Listener& listener, Deadline deadline) const {
    auto made = Connection::to(lead, deadline);
    if (!made) return made;
    std::vector<std::string> addresses = network::own_addresses();
    const std::string used = made->own_address();
    std::stable_partition(addresses.begin(), addresses.end(),
                          [&](const auto& each) { return each == used && !network::is_loopback(each); });
    const std::string line = fmt::format("{} {} {} {} {} {} {} {}", greeting, token_, group_.rank, group_.size,
                                         node_name(), host_name(), listener.port(), fmt::join(addresses, ","));
    if (auto said = say(*made, line, deadline); !said) return pass_on(said.error());
    const auto answer = made->read_line(deadline);
    if (!answer) return pass_on(answer.error());
    if (answer->starts_with("refused ")) return fail(ErrorKind::usage, "{}", printable(answer->substr(8)));
    if (*answer != "welcome") return fail(ErrorKind::system, "another program answers");
    return made;
  }

  Result<void> obey(Connection& lead, const Listener& listener) const {
    const double patience_s = options_.timeout_s * (options_.max_pairs + 2);  // others are measured
    for (;;) {
      const auto line = lead.read_line(after(patience_s));
      if (!line) return fail(ErrorKind::system, "rank {}: rank 0 is lost: {}", group_.rank, line.error().message);
      const auto words = parts_of(*line, ' ');
      if (*line == "end") return {};
      if (line->starts_with("stop ")) return fail(ErrorKind::system, "rank 0 stopped: {}", printable(line->substr(5)));
      Result<void> done;
      if (*line == "serve") {
        done = say(lead, "ready", after(options_.timeout_s));
        if (done) done = serve(listener, token_, options_.timeout_s);
        if (done) done = say(lead, "served", after(options_.timeout_s));
      } else if (words.size() == 5 && words[0] == "measure") {
        done = measure_for(lead, words);
      } else {
        done = fail(ErrorKind::system, "rank 0 said '{}'", printable(*line));
      }
      if (!done && !say(lead, fmt::format("failed {}", done.error().message), after(options_.timeout_s))) return done;
    }
  }

  Result<void> measure_for(Connection& lead, const std::vector<std::string>& words) const {
    NetworkProbeOptions how = options_;
    Endpoint server;
    if (!read_number(words[1], how.repeats) || !read_number(words[2], how.measured_s) ||
        !read_number(words[3], server.port))
      return fail(ErrorKind::system, "rank 0 said '{}'", printable(fmt::format("{}", fmt::join(words, " "))));
    server.addresses = parts_of(words[4], ',');
    const auto samples = measure(server, token_, how, [&] { return say(lead, "busy", after(options_.timeout_s)); });
    if (!samples) return pass_on(samples.error());
    if (auto said = say(lead, fmt::format("startup {}", fmt::join(samples->startup_s, " ")), after(options_.timeout_s));
        !said)
      return said;
    return say(lead, fmt::format("transfer {}", fmt::join(samples->s_per_byte, " ")), after(options_.timeout_s));
  }

  const NetworkGroup& group_;
  const NetworkProbeOptions& options_;
  std::string token_;
};

// The part of rank 0.

struct Guest {
  Connection line;
  std::uint32_t rank = 0;
  std::string node, host;
  Endpoint at;
};

/// Where `from` reaches `to`: by loopback only on the same node.
Endpoint reachable(const Guest& from, const Guest& to) {
  Endpoint endpoint{{}, to.at.port};
  for (const std::string& address : to.at.addresses)
    if (!network::is_loopback(address) || from.node == to.node) endpoint.addresses.push_back(address);
  return endpoint;
}

class Lead {
 public:
  Lead(const NetworkGroup& group, const NetworkProbeOptions& options,
       const std::function<void(std::string_view)>& progress)
      : group_(group), options_(options), progress_(progress) {}

  Result<NetworkProbe> run() {
    if (std::error_code ignored; !std::filesystem::is_directory(group_.directory, ignored))
      return fail(ErrorKind::system, "'{}': not a directory; --rendezvous is one that all processes see",
                  printable(group_.directory));
    const std::string file = meeting_file(group_);
    auto listener = Listener::open();
    if (!listener) return pass_on(listener.error());
    const std::vector<std::string> addresses = network::own_addresses();
    const std::string meeting =
        fmt::format("{} {} {} {}\n", greeting, token_, listener->port(), fmt::join(addresses, ","));
    if (auto written = replace_file(file, meeting); !written) return pass_on(written.error());
    const Endpoint here{{"127.0.0.1", "::1"}, listener->port()};
    std::jthread own(
        [&](const std::stop_token& stop) { static_cast<void>(Member(group_, options_).run(&here, token_, stop)); });
    auto probe = gather(*listener).and_then([&] { return measure_pairs(); });
    ::unlink(file.c_str());
    for (auto& [rank, guest] : guests_)
      static_cast<void>(say(guest.line, probe ? "end" : fmt::format("stop {}", probe.error().message), after(hello_s)));
    own.request_stop();
    guests_.clear();
    *listener = Listener();  // ends the connections that were not taken
    return probe;
  }

 private:
  void tell(std::string_view what) const {
    if (progress_) progress_(what);
  }

  Result<void> go_on() const {
    if (options_.is_interrupted && options_.is_interrupted()) return fail(ErrorKind::system, "interrupted");
    return {};
  }

  Result<void> gather(const Listener& listener) {
    const Deadline deadline = after(options_.timeout_s);
    while (guests_.size() < group_.size) {
      tell(fmt::format("network: {} of {} processes have come", guests_.size(), group_.size));
      auto guest = listener.accept(std::min(deadline, after(between_questions_s)));
      if (auto going = go_on(); !going) return going;
      if (!guest && network::Clock::now() >= deadline) break;
      if (!guest) continue;
      if (auto met = meet(*std::move(guest)); !met) return met;
    }
    if (guests_.size() == group_.size) return {};
    std::vector<std::uint32_t> missing;
    for (std::uint32_t rank = 0; rank < group_.size && missing.size() < 10; ++rank)
      if (!guests_.contains(rank)) missing.push_back(rank);
    const bool is_alone = std::ranges::all_of(network::own_addresses(), network::is_loopback);
    return fail(ErrorKind::system,
                "only {} of {} processes came within {}; missing: rank {}; all must run this command, and see the same "
                "directory '{}' (--rendezvous){}",
                guests_.size(), group_.size, about_seconds(options_.timeout_s), fmt::join(missing, ", "),
                printable(group_.directory),
                is_alone ? "; other nodes cannot reach rank 0's, which has no address except its loopback" : "");
  }

  /// Passes over what is no process of the group.
  Result<void> meet(Connection line) {
    const auto hello = line.read_line(after(hello_s));
    if (!hello) return {};
    const auto words = parts_of(*hello, ' ');
    Guest guest{std::move(line), 0, {}, {}, {}};
    std::uint32_t size = 0;
    if (words.size() != 9 || fmt::format("{} {}", words[0], words[1]) != greeting || words[2] != token_ ||
        !read_number(words[3], guest.rank) || !read_number(words[4], size) || !read_number(words[7], guest.at.port))
      return {};
    if (size != group_.size || guest.rank >= size || guests_.contains(guest.rank)) {
      const std::string why = fmt::format(
          "rank {} of {} came, where {} processes are expected, each once; two jobs at "
          "a time need directories of their own (--rendezvous)",
          guest.rank, size, group_.size);
      static_cast<void>(say(guest.line, "refused " + why, after(hello_s)));
      return {};
    }
    guest.node = words[5];
    guest.host = words[6];
    guest.at.addresses = parts_of(words[8], ',');
    if (auto said = say(guest.line, "welcome", after(hello_s)); !said) return {};
    guests_.emplace(guest.rank, std::move(guest));
    return {};
  }

  Result<NetworkProbe> measure_pairs() {
    std::map<std::string, std::uint32_t> first;  // rank of each node
    std::vector<std::uint32_t> ranks;
    for (const auto& [rank, guest] : guests_)
      if (first.try_emplace(guest.node, rank).second) ranks.push_back(rank);
    NetworkProbe probe;
    std::vector<Estimate> startup_s, s_per_byte;
    probe.nodes = static_cast<std::uint32_t>(ranks.size());
    if (ranks.size() == 1) ranks.push_back(std::next(guests_.begin())->first);
    const std::size_t pairs = std::min<std::size_t>(ranks.size(), std::max(1U, options_.max_pairs));
    for (std::size_t n = 0; n < pairs; ++n) {
      const std::size_t at = n * ranks.size() / pairs;  // evenly among the nodes
      Guest& from = guests_.at(ranks[at]);
      Guest& to = guests_.at(ranks[(at + 1) % ranks.size()]);
      tell(fmt::format("network: pair {} of {}, {} to {}", n + 1, pairs, name_of(from), name_of(to)));
      auto samples = measure_pair(from, to);
      if (!samples) return pass_on(cause_of(samples.error(), to));
      startup_s.push_back(estimate_of(samples->startup_s));
      s_per_byte.push_back(estimate_of(samples->s_per_byte));
      probe.pairs.push_back({name_of(from), name_of(to), startup_s.back(), s_per_byte.back()});
    }
    probe.startup_s = mean_of(startup_s);
    probe.s_per_byte = mean_of(s_per_byte);
    return probe;
  }

  /// "node7", or "node7 (rank 3)" where other nodes have this name, too.
  std::string name_of(const Guest& guest) const {
    const bool is_shared = std::ranges::any_of(
        guests_, [&](const auto& each) { return each.second.host == guest.host && each.first != guest.rank; });
    return is_shared ? fmt::format("{} (rank {})", guest.host, guest.rank) : guest.host;
  }

  /// A process that measures says that its peer is lost. If that has ended, it is the one to name.
  Error cause_of(const Error& error, const Guest& peer) const {
    for (const Deadline heard = after(until_heard_s); go_on() && network::Clock::now() < heard;) {
      if (peer.line.has_ended())
        return {ErrorKind::system, fmt::format("rank {} on {} has ended", peer.rank, printable(peer.host))};
      std::this_thread::sleep_for(between_tries);
    }
    return error;
  }

  /// The next line of a guest that is no sign of life.
  Result<std::string> answer_of(Guest& guest) const {
    for (;;) {
      auto line = guest.line.read_line(after(options_.timeout_s));
      if (auto going = go_on(); !going) return pass_on(going.error());
      if (!line)
        return fail(ErrorKind::system, "rank {} on {} is lost: {}", guest.rank, printable(guest.host),
                    line.error().message);
      if (line->starts_with("failed "))
        return fail(ErrorKind::system, "rank {} on {}: {}", guest.rank, printable(guest.host),
                    printable(line->substr(7)));
      if (*line != "busy") return line;
    }
  }

  Result<std::vector<double>> numbers_of(Guest& guest, std::string_view word) const {
    const auto line = answer_of(guest);
    if (!line) return pass_on(line.error());
    const auto words = parts_of(*line, ' ');
    std::vector<double> numbers;
    for (std::size_t n = 1; n < words.size(); ++n)
      if (double number = 0; read_number(words[n], number) && std::isfinite(number) && number > 0)
        numbers.push_back(number);
    if (words.empty() || words[0] != word || numbers.empty() || numbers.size() + 1 != words.size())
      return fail(ErrorKind::system, "rank {} on {} said '{}'", guest.rank, printable(guest.host), printable(*line));
    return numbers;
  }

  Result<Samples> measure_pair(Guest& from, Guest& to) const {
    const Deadline soon = after(options_.timeout_s);
    if (auto said = say(to.line, "serve", soon); !said) return pass_on(said.error());
    if (const auto ready = answer_of(to); !ready) return pass_on(ready.error());
    const Endpoint server = reachable(from, to);
    const std::string order = fmt::format("measure {} {} {} {}", options_.repeats, options_.measured_s, server.port,
                                          fmt::join(server.addresses, ","));
    if (auto said = say(from.line, order, soon); !said) return pass_on(said.error());
    auto startup_s = numbers_of(from, "startup");
    if (!startup_s) return pass_on(startup_s.error());
    auto s_per_byte = numbers_of(from, "transfer");
    if (!s_per_byte) return pass_on(s_per_byte.error());
    if (const auto served = answer_of(to); !served) return pass_on(served.error());
    return Samples{*std::move(startup_s), *std::move(s_per_byte)};
  }

  const NetworkGroup& group_;
  const NetworkProbeOptions& options_;
  const std::function<void(std::string_view)>& progress_;
  const std::string token_ = new_token();
  std::map<std::uint32_t, Guest> guests_;
};

}  // namespace

Result<std::optional<NetworkProbe>> probe_network(const NetworkGroup& group, const NetworkProbeOptions& options,
                                                  const std::function<void(std::string_view)>& progress) {
  if (group.size < 2 || group.rank >= group.size)
    return fail(ErrorKind::usage, "rank {} of {}: expected at least two processes", group.rank, group.size);
  if (group.rank != 0)
    return Member(group, options).run(nullptr, "", {}).map([] { return std::optional<NetworkProbe>(); });
  return Lead(group, options, progress).run().map([](NetworkProbe&& probe) { return std::optional(std::move(probe)); });
}

Network network_of(const NetworkProbe& probe) {
  const Estimate& time = probe.s_per_byte;
  Estimate rate = time;
  rate.mean = 1 / time.mean;
  rate.low = 1 / time.high;
  rate.high = time.low > 0 ? 1 / time.low : 2 * rate.mean;
  Network network;
  set_measured(network, &Network::startup_s, "startup", probe.startup_s, rounded_seconds, seconds_text);
  set_measured(network, &Network::bytes_per_s, "bandwidth", rate, rounded_rate, rate_text);
  return network;
}

}  // namespace iosig
