#include "iosig/trace/notes.h"

#include <fmt/format.h>

#include "iosig/base/text.h"

namespace iosig::trace {

std::vector<std::string> notes_on(const Trace& trace) {
  std::vector<std::string> notes;
  for (const UnreadablePart& part : trace.unreadable())
    notes.push_back(fmt::format("left out: {}", part.error.message));
  std::uint64_t lost = 0, cut = 0;
  for (const Part& part : trace.parts()) {
    lost += part.header.lost_calls;
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
  for (const std::string& host : trace.hosts_without_clock())
    notes.push_back(fmt::format(
        "the trace does not say how long a tick of the clock of '{}' is: times are in ticks there", printable(host)));
  return notes;
}

std::string note_on_fault(std::string_view message) {
  return fmt::format("{}; the later calls of that thread are left out", message);
}

}  // namespace iosig::trace
