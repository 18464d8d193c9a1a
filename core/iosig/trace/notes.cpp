#include "iosig/trace/notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::trace {

std::vector<std::string> notes_on(const Trace& trace) {
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
        fmt::format("{} for which no file could be made, because the trace's directory was full or gone, made {} calls",
                    count == 1 ? "1 process" : fmt::format("{} processes", count), trace.unrecorded_calls()));
  if (const std::uint64_t missing = trace.missing_parts(); missing > 0)
    notes.push_back(missing == 1 ? "the part of 1 thread is not there: removed, or not made"
                                 : fmt::format("the parts of {} threads are not there: removed, or not made", missing));
  for (const std::string& host : trace.hosts_without_clock())
    notes.push_back(fmt::format(
        "the trace does not say how long a tick of the clock of '{}' is: times are in ticks there", printable(host)));
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
