// The clocks of a trace: ticks become nanoseconds, and hosts get one clock.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
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

/// What parts of one boot have in common.
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
  }
}

namespace {

bool has_own_clock(const Part& part, const Process& process) {
  return part.header.boot == 0 && process.rank && (part.host.empty() || part.host == "unknown");
}

/// Returns a number for the clock of a boot, of a host whose boot is not known, or of a rank whose host is not known
/// either.
std::uint64_t number_of_clock(const Part& part, const Process& process) {
  if (part.header.boot != 0) return part.header.boot;
  return has_own_clock(part, process) ? process.key : fnv1a(part.host);
}

JoinedCall joined_call(const CollectiveCall& call, const std::unordered_map<const Process*, std::uint32_t>& clock_of) {
  JoinedCall joined{.moves_data = moves_of(call.call) != Moves::nothing};
  std::vector<const CollectiveMember*> members;
  for (const CollectiveMember& each : call.members) members.push_back(&each);
  std::ranges::stable_sort(members, {}, [](const CollectiveMember* each) { return each->process->rank; });
  for (const CollectiveMember* const each : members)
    joined.members.push_back({clock_of.at(each->process), each->start_ns, each->end_ns});
  return joined;
}

}  // namespace

/// Shifts the clocks of hosts to that of one of them, by calls that their processes made together.
void Trace::align_clocks() {
  std::unordered_map<std::uint64_t, std::uint32_t> places;
  std::unordered_map<const Process*, std::uint32_t> clock_of;
  std::vector<HostClock> found;
  for (const Part& part : parts_) {
    Process& process = processes_.at(part.header.process);
    process.clock = number_of_clock(part, process);
    const auto [known, is_new] = places.try_emplace(process.clock, static_cast<std::uint32_t>(places.size()));
    clock_of[&process] = known->second;
    if (is_new) found.push_back({has_own_clock(part, process) ? fmt::format("rank {}", *process.rank) : part.host, {}});
  }
  if (found.size() < 2) return;
  // Times of damage are not shifted, so that none overflows.
  constexpr std::int64_t max_aligned_ns = std::int64_t{1} << 61;  // 73 years
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const auto is_beyond = [&](std::uint64_t ticks) {
      const std::int64_t ns = clocks_[part].at(ticks);
      return ns < 0 || ns > max_aligned_ns;
    };
    if (std::ranges::any_of(parts_[part].blocks, is_beyond, &BlockPlace::greatest_end) ||
        std::ranges::any_of(parts_[part].loose, [&](const PartCall& each) {
          return is_beyond(each.slot.start) || (each.slot.end != 0 && is_beyond(each.slot.end));
        })) {
      host_clocks_ = std::move(found);
      return;
    }
  }
  std::vector<Error> faults;  // whoever reads the accesses meets them, too
  std::vector<JoinedCall> calls;
  for (const CollectiveCall& each : collective_calls(*this, faults)) calls.push_back(joined_call(each, clock_of));
  const auto differences = clock_differences(calls, static_cast<std::uint32_t>(found.size()));
  for (std::size_t n = 0; n < found.size(); ++n) found[n].difference = differences[n];
  for (std::size_t part = 0; part < parts_.size(); ++part)
    clocks_[part].ns -= differences[clock_of.at(&process_of(parts_[part]))].ahead_ns;
  const auto is_aligned = [](ClockState state) {
    return state != ClockState::alone && state != ClockState::contradictory;
  };
  std::uint64_t aligned = 0;
  for (const auto& [number, place] : places)
    if (differences[place].state == ClockState::reference) aligned = number;
  for (auto& [key, process] : processes_)
    if (is_aligned(differences[clock_of.at(&process)].state)) process.clock = aligned;
  host_clocks_ = std::move(found);
  list_batches();
}

}  // namespace iosig::trace
