#include "storage_network.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "interruption.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/trace/part_bytes.h"
#include "storage_json.h"
#include "trace_directory.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

/// The first of the variables that is a number.
template <std::size_t count>
std::optional<std::uint32_t> number_in(const char* const (&variables)[count]) {
  for (const char* variable : variables) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) continue;
    const std::string_view view(text);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
    if (error == std::errc{} && end == view.data() + view.size()) return number;
  }
  return {};
}

std::string rate_of(double s_per_byte) { return s_per_byte > 0 ? about_rate(1 / s_per_byte) : "-"; }

std::string spread_text(const Estimate& estimate) {
  return fmt::format("{:.0f} %", 50 * (estimate.high - estimate.low) / estimate.mean);
}

ordered_json estimate_json(const Estimate& estimate) {
  return {{"mean", estimate.mean}, {"low", estimate.low}, {"high", estimate.high}, {"settled", estimate.settled}};
}

/// Notes what a reader of the figures should know.
void note_weaknesses(const NetworkProbe& probe, const Console& console) {
  if (probe.nodes == 1)
    console.note("all processes run on one node: these are the figures of its loopback, not of a network");
  constexpr double much = 2;
  const auto [fast, slow] =
      std::ranges::minmax_element(probe.pairs, {}, [](const MeasuredPair& each) { return each.startup_s.mean; });
  if (slow->startup_s.mean > much * fast->startup_s.mean)
    console.note(fmt::format("the pairs differ: {} from {} to {}, {} from {} to {}; plans use the mean",
                             about_seconds(fast->startup_s.mean), printable(fast->from), printable(fast->to),
                             about_seconds(slow->startup_s.mean), printable(slow->from), printable(slow->to)));
  for (const auto& [what, estimate] : {std::pair{"start-up", &probe.startup_s}, {"transfer", &probe.s_per_byte}})
    if (!estimate->settled)
      console.note(fmt::format("the {} did not settle: its mean is known to ±{}; measure again on a quiet machine",
                               what, spread_text(*estimate)));
}

}  // namespace

void add_network_options(Verb probe, NetworkFlags& flags) {
  probe.add_flag("--network", flags.is_wanted,
                 "measure only the network between the processes that mpirun or srun started, one on each node");
  probe.add_option("--repeats", flags.repeats, "of --network: round trips, and transfers of 256 KB, for each pair")
      .type_name("N")
      .shows_default();
  probe.add_option("--pairs", flags.pairs, "of --network: at most so many pairs of nodes")
      .type_name("N")
      .shows_default();
  probe
      .add_option("--rendezvous", flags.rendezvous,
                  "of --network: directory that all processes see, in which they find each other")
      .type_name("DIRECTORY")
      .shows_default();
  probe.add_option("--timeout", flags.timeout, "of --network: until all processes have come, and for any answer")
      .type_name("TIME")
      .shows_default();
}

Result<std::optional<NetworkProbe>> measured_network(const NetworkFlags& flags, Console& console) {
  const auto rank = number_in(trace::rank_variables), size = number_in(trace::size_variables);
  if (!rank || !size || *size < 2)
    return fail(ErrorKind::usage,
                "--network needs at least two processes: mpirun -n 2 --map-by node iosig storage probe --network");
  const auto timeout_s = parse_seconds(flags.timeout);
  if (!timeout_s) return fail(ErrorKind::usage, "--timeout: {}", timeout_s.error().message);
  if (!(*timeout_s > 0) || flags.repeats == 0 || flags.pairs == 0)
    return fail(ErrorKind::usage, "--timeout {}, --repeats {}, --pairs {}: expected more than 0", flags.timeout,
                flags.repeats, flags.pairs);
  NetworkProbeOptions options;
  options.repeats = flags.repeats;
  options.max_pairs = flags.pairs;
  options.timeout_s = *timeout_s;
  options.is_interrupted = [] { return interruption() != 0; };
  std::optional<NoticeSignals> noticing;  // an interruption of rank 0 must remove the file of the rendezvous
  if (*rank == 0) noticing.emplace();
  auto probe = probe_network({*rank, *size, job_name(), flags.rendezvous}, options,
                             [&](std::string_view what) { console.progress(what); });
  console.end_progress();
  return probe;
}

void say_network(const NetworkProbe& probe, const Storage& storage, const std::string& file, const Console& console) {
  note_weaknesses(probe, console);
  if (console.json) {
    ordered_json pairs = ordered_json::array();
    for (const MeasuredPair& each : probe.pairs)
      pairs.push_back({{"from", each.from},
                       {"to", each.to},
                       {"startup_s", estimate_json(each.startup_s)},
                       {"s_per_byte", estimate_json(each.s_per_byte)}});
    console.say_json("iosig.storage.network/1", {{"file", file.empty() ? ordered_json(nullptr) : ordered_json(file)},
                                                 {"nodes", probe.nodes},
                                                 {"network", network_json(storage)},
                                                 {"pairs", std::move(pairs)}});
    return;
  }
  Table table({"FROM", "TO", "STARTUP", "±", "BANDWIDTH", "±"});
  for (const MeasuredPair& each : probe.pairs)
    table.add({printable(each.from), printable(each.to), about_seconds(each.startup_s.mean),
               spread_text(each.startup_s), rate_of(each.s_per_byte.mean), spread_text(each.s_per_byte)});
  if (probe.pairs.size() > 1)
    table.add({"all", "", about_seconds(probe.startup_s.mean), spread_text(probe.startup_s),
               rate_of(probe.s_per_byte.mean), spread_text(probe.s_per_byte)});
  console.say(table);
}

}  // namespace iosig::cli
