#include "iosig/trace/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::trace {
namespace {

constexpr std::size_t max_named_clocks = 4;

std::string quoted_names(const std::vector<const HostClock*>& clocks) {
  std::string names;
  for (std::size_t n = 0; n < std::min(clocks.size(), max_named_clocks); ++n)
    names += fmt::format("{}'{}'", n == 0 ? "" : ", ", printable(clocks[n]->name));
  if (clocks.size() > max_named_clocks) names += fmt::format(" and {} more", clocks.size() - max_named_clocks);
  return names;
}

std::string difference_text(std::int64_t ns) { return about_seconds(1e-9 * std::abs(static_cast<double>(ns))); }

std::string ahead_text(const ClockDifference& found, std::string_view reference) {
  return fmt::format("{} {} that of '{}', within {}, by {} collective MPI call{}", difference_text(found.ahead_ns),
                     found.ahead_ns > 0 ? "ahead of" : "behind", reference,
                     difference_text(std::max(found.at_most_ns - found.ahead_ns, found.ahead_ns - found.at_least_ns)),
                     found.agreeing, found.agreeing == 1 ? "" : "s");
}

void add_clock_notes(const Trace& trace, NamedClocks clocks, std::vector<std::string>& notes) {
  std::vector<const HostClock*> alone, ahead;
  for (const HostClock& each : trace.host_clocks()) {
    if (each.difference.state == ClockState::alone) alone.push_back(&each);
    if (each.difference.state == ClockState::ahead) ahead.push_back(&each);
    if (each.difference.state == ClockState::contradictory && clocks == NamedClocks::all)
      notes.push_back(fmt::format(
          "collective MPI calls contradict each other on how far the clock of '{}' is ahead of that of "
          "'{}' ({} of {} agree): times are compared as they are",
          printable(each.name), printable(each.reference), each.difference.agreeing, each.difference.calls));
  }
  for (std::size_t n = 0; n < std::min(ahead.size(), max_named_clocks); ++n)
    notes.push_back(fmt::format("the clock of '{}' was {}: its times are shifted by that", printable(ahead[n]->name),
                                ahead_text(ahead[n]->difference, printable(ahead[n]->reference))));
  if (ahead.size() > max_named_clocks)
    notes.push_back(fmt::format("the clocks of {} more hosts are aligned likewise: 'iosig trace info --json' has them",
                                ahead.size() - max_named_clocks));
  if (!alone.empty() && clocks == NamedClocks::all)
    notes.push_back(fmt::format(
        "{} {} no collective MPI call in common{}, by which clocks could be aligned: times are compared as they are",
        quoted_names(alone), alone.size() == 1 ? "has" : "have",
        alone.front()->reference.empty() ? "" : fmt::format(" with '{}'", printable(alone.front()->reference))));
}

}  // namespace

std::vector<std::string> notes_on(const Trace& trace, NamedClocks clocks) {
  std::vector<std::string> notes;
  for (const UnreadablePart& part : trace.unreadable())
    notes.push_back(fmt::format("left out: {}", part.error.message));
  std::uint64_t lost = 0, names = 0, cut = 0;
  for (const Part& part : trace.parts()) {
    lost += part.header.lost_calls;
    names += part.header.lost_names;
    if (!part.fault) continue;
    if (part.fault->is_cut)
      ++cut;
    else
      notes.push_back(fmt::format("{}: {} at byte {}; the calls before it are read", printable(part.name),
                                  part.fault->what, part.fault->at));
  }
  if (cut > 0)
    notes.push_back(fmt::format("{} part{} within a block: still being written, or the process was killed meanwhile",
                                cut, cut == 1 ? " ends" : "s end"));
  if (lost > 0)
    notes.push_back(fmt::format(
        "{} calls could not be recorded: the trace's directory was full, or too many were in flight at once", lost));
  if (names > 0)
    notes.push_back(fmt::format("{} names of files could not be kept: the trace's directory was full", names));
  if (const std::uint64_t count = trace.unrecorded_processes(); count > 0)
    notes.push_back(
        fmt::format("{} for which no file could be made, because the trace's directory was full or gone or no "
                    "descriptor was free, made {} calls",
                    count == 1 ? "1 process" : fmt::format("{} processes", count), trace.unrecorded_calls()));
  if (const std::uint64_t missing = trace.missing_parts(); missing > 0)
    notes.push_back(missing == 1 ? "the part of 1 thread is not there: removed, or not made"
                                 : fmt::format("the parts of {} threads are not there: removed, or not made", missing));
  for (const std::string& host : trace.hosts_without_clock())
    notes.push_back(fmt::format(
        "the trace does not say how long a tick of the clock of '{}' is: times are in ticks there", printable(host)));
  add_clock_notes(trace, clocks, notes);
  if (!trace.counters().empty()) {
    std::uint64_t calls = 0;
    for (const FileCounters& file : trace.counters()) calls += std::min(file.calls(), UINT64_MAX - calls);
    notes.push_back(fmt::format(
        "{} accesses have counters alone, without times and offsets: 'infer' uses them, and 'query calls' and "
        "'query pattern' by layer, call, rank and file",
        calls));
  }
  return notes;
}

std::string note_on_fault(std::string_view message) {
  return fmt::format("{}; the later calls of that thread are left out", message);
}

}  // namespace iosig::trace
