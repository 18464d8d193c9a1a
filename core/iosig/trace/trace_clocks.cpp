// The clocks of a trace: ticks become nanoseconds, and hosts get one clock.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>

#include "iosig/base/json_text.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/trace/clock_pair.h"
#include "iosig/trace/collectives.h"
#include "iosig/trace/part_bytes.h"
#include "iosig/trace/trace.h"

namespace iosig::trace {
namespace {

/// The clocks that `iosig trace` read before the program started, if the manifest has those of that boot.
std::optional<ClockPair> clocks_in(const std::string& manifest, std::uint64_t boot) {
  const nlohmann::ordered_json document = parse_json(manifest, 8);
  if (boot == 0 || !document.is_object() || !document.contains("clock")) return std::nullopt;
  const nlohmann::ordered_json& clock = document["clock"];
  const auto number = [&](const char* key) -> std::uint64_t {
    return clock.is_object() && clock.contains(key) && clock[key].is_number_unsigned() ? clock[key].get<std::uint64_t>()
                                                                                       : 0;
  };
  const ClockPair pair{number("ticks"), number("monotonic_ns")};
  return number("boot") == boot && pair.ticks != 0 && pair.monotonic_ns != 0 ? std::optional(pair) : std::nullopt;
}

/// This machine's clocks, if it is still in that boot and has a time stamp counter.
std::optional<ClockPair> clocks_now(std::uint64_t boot) {
#if defined(__x86_64__)
  if (boot == 0 || boot != boot_number(boot_id())) return std::nullopt;
  return clock_pair(read_tsc);
#else
  (void)boot;
  return std::nullopt;
#endif
}

/// The facts that all parts of one boot share.
struct SharedClock {
  ClockPair first{UINT64_MAX, 0}, last{};
  std::uint64_t first_monotonic_ns = UINT64_MAX;
  std::int64_t realtime_behind_ns = 0;  ///< CLOCK_REALTIME - CLOCK_MONOTONIC
  std::string host;

  void add(ClockPair pair) {
    if (pair.ticks < first.ticks) first = pair;
    if (pair.ticks > last.ticks) last = pair;
  }
};

bool has_own_clock(const Part& part, const Process& process) {
  return part.header.boot == 0 && process.rank && (part.host.empty() || part.host == "unknown");
}

/// Returns a number for the clock of a boot, of a host whose boot is not known, or of a rank whose host is not known
/// either.
std::uint64_t number_of_clock(const Part& part, const Process& process) {
  if (part.header.boot != 0) return part.header.boot;
  return has_own_clock(part, process) ? process.key : fnv1a(part.host);
}

JoinedKind kind_of(Call call) {
  if (call == Call::MPI_Barrier) return JoinedKind::barrier;
  return moves_of(call) == Moves::nothing ? JoinedKind::file : JoinedKind::moves_data;
}

JoinedCall joined_call(const CollectiveCall& call, const std::unordered_map<const Process*, std::uint32_t>& clock_of) {
  JoinedCall joined{.kind = kind_of(call.call)};
  std::vector<const CollectiveMember*> members;
  for (const CollectiveMember& each : call.members)
    if (!each.may_be_another) members.push_back(&each);
  std::ranges::stable_sort(members, {}, [](const CollectiveMember* each) { return each->process->rank; });
  for (const CollectiveMember* const each : members)
    joined.members.push_back({clock_of.at(each->process), each->start_ns, each->end_ns});
  return joined;
}

}  // namespace

std::int64_t Trace::Clock::at(std::uint64_t ticks_then) const {
  const auto passed = static_cast<std::int64_t>(ticks_then - ticks);
  if (ns_per_tick == 1) return ns + passed;
  return ns + static_cast<std::int64_t>(std::llround(static_cast<long double>(passed) * ns_per_tick));
}

void Trace::set_clocks() {
  // Parts of hosts whose boot is not known have a clock of their own.
  std::map<std::pair<std::uint64_t, std::uint64_t>, SharedClock> shared;
  const auto key_of = [](const Part& part) {
    const std::uint64_t own = part.header.boot != 0 ? 0 : part.header.process;
    return std::pair(part.header.boot, own);
  };
  for (const Part& part : parts_) {
    SharedClock& clock = shared[key_of(part)];
    clock.add(part.header.first);
    clock.add(part.last_clock);
    if (part.header.clock == ClockKind::tsc)
      if (const auto before = clocks_in(manifest_, part.header.boot)) clock.add(*before);
    clock.host = part.host;
    if (part.header.first.monotonic_ns < clock.first_monotonic_ns) {
      clock.first_monotonic_ns = part.header.first.monotonic_ns;
      clock.realtime_behind_ns = static_cast<std::int64_t>(part.header.realtime_ns - part.header.first.monotonic_ns);
    }
  }
  for (const Part& part : parts_) {
    SharedClock& of_boot = shared[key_of(part)];
    Clock clock;
    clock.ticks = part.header.first.ticks;
    clock.ns = static_cast<std::int64_t>(part.header.first.monotonic_ns) + of_boot.realtime_behind_ns;
    if (part.header.clock == ClockKind::tsc) {
      // The rate comes from the trace, so that it is the same whenever the trace is read: an error of 50 ns in a pair
      // is one of 50 ns at the end of the trace. Only if a killed process left a single pair, this machine's clocks,
      // if it is still the same boot, are the other one.
      if (of_boot.last.ticks == of_boot.first.ticks)
        if (const auto now = clocks_now(part.header.boot)) of_boot.add(*now);
      const std::uint64_t ticks = of_boot.last.ticks - of_boot.first.ticks;
      if (ticks > 0 && of_boot.last.monotonic_ns > of_boot.first.monotonic_ns)
        clock.ns_per_tick = static_cast<long double>(of_boot.last.monotonic_ns - of_boot.first.monotonic_ns) /
                            static_cast<long double>(ticks);
      else if (std::ranges::find(hosts_without_clock_, of_boot.host) == hosts_without_clock_.end())
        hosts_without_clock_.push_back(of_boot.host);
      // All parts of a boot count from the same moment.
      clock.ticks = of_boot.first.ticks;
      clock.ns = static_cast<std::int64_t>(of_boot.first.monotonic_ns) + of_boot.realtime_behind_ns;
    }
    clocks_.push_back(clock);
    Process& process = processes_.at(part.header.process);
    process.clock = number_of_clock(part, process);
  }
}

/// Whether some time is one of damage: it is not shifted, so that none overflows.
bool Trace::has_impossible_times() const {
  constexpr std::int64_t most_ns = std::int64_t{1} << 61;  // 73 years
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto is_beyond = [&](std::uint64_t ticks) {
      const std::int64_t ns = clocks_[part].at(ticks);
      return ns < 0 || ns > most_ns;
    };
    if (std::ranges::any_of(parts_[part].blocks, is_beyond, &BlockPlace::greatest_end) ||
        std::ranges::any_of(parts_[part].loose, [&](const PartCall& each) {
          return is_beyond(each.slot.start) || (each.slot.end != 0 && is_beyond(each.slot.end));
        }))
      return true;
  }
  return started_ns_ < 0 || started_ns_ > most_ns;
}

void Trace::align(std::span<Trace> traces) {
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  std::unordered_map<const Process*, std::uint32_t> place_of;
  for (const Trace& trace : traces)
    for (const Part& part : trace.parts_) {
      const Process& process = trace.process_of(part);
      place_of[&process] = places.try_emplace(process.clock, static_cast<std::uint32_t>(places.size())).first->second;
    }
  if (places.size() < 2) return;
  std::vector<HostClock> found(places.size());
  for (const Trace& trace : traces)
    for (const Part& part : trace.parts_) {
      const Process& process = trace.process_of(part);
      if (number_of_clock(part, process) == process.clock)
        found[place_of.at(&process)].name =
            has_own_clock(part, process) ? fmt::format("rank {}", *process.rank) : part.host;
    }
  if (std::ranges::none_of(traces, &Trace::has_impossible_times)) {
    std::vector<Error> faults;  // whoever reads the accesses meets them, too
    std::vector<JoinedCall> calls;
    for (const CollectiveCall& each : collective_calls(traces, faults)) calls.push_back(joined_call(each, place_of));
    std::erase_if(calls, [](const JoinedCall& each) { return each.members.size() < 2; });
    const auto differences = clock_differences(calls, static_cast<std::uint32_t>(found.size()));
    const auto reference = std::ranges::find(differences, ClockState::reference, &ClockDifference::state);
    for (std::size_t n = 0; n < found.size(); ++n) {
      found[n].difference = differences[n];
      if (reference != differences.end()) found[n].reference = found[reference - differences.begin()].name;
    }
  }
  for (Trace& trace : traces) trace.shift_clocks(found, place_of, places, traces.size() == 1);
}

void Trace::shift_clocks(const std::vector<HostClock>& found,
                         const std::unordered_map<const Process*, std::uint32_t>& place_of,
                         const std::unordered_map<std::uint64_t, std::uint32_t>& places, bool is_alone) {
  std::uint64_t reference = 0;
  for (const auto& [number, place] : places)
    if (found[place].difference.state == ClockState::reference) reference = number;
  for (std::size_t part = 0; part < parts_.size(); ++part)
    clocks_[part].ns -= found[place_of.at(&process_of(parts_[part]))].difference.ahead_ns;
  std::set<std::uint32_t> shown;
  for (auto& [key, process] : processes_) {
    const std::uint32_t place = place_of.at(&process);
    const ClockState state = found[place].difference.state;
    if (state != ClockState::alone && state != ClockState::contradictory) process.clock = reference;
    // Traces of different jobs need have nothing in common.
    if (is_alone || state == ClockState::ahead || state == ClockState::contradictory) shown.insert(place);
  }
  for (const std::uint32_t place : shown) host_clocks_.push_back(found[place]);
  list_batches();
}

Result<std::vector<Trace>> open_traces(std::span<const std::string> directories) {
  std::vector<Trace> traces;
  for (const std::string& each : directories) {
    auto opened = Trace::open(each);
    if (!opened) return pass_on(opened.error());
    traces.push_back(std::move(*opened));
  }
  if (traces.size() > 1) Trace::align(traces);
  return traces;
}

}  // namespace iosig::trace
