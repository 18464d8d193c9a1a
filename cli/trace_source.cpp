#include "trace_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::cli {

void add_selection_options(Verb verb, std::string& layer, std::string& files) {
  verb.add_option("--layer", layer,
                  fmt::format("only calls of this layer: mpi-io, stdio or posix{}",
                              layer.empty() ? "" : fmt::format("; {} unless given", layer)))
      .type_name("NAME");
  verb.add_option("--files", files, "only calls on files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB");
}

Result<trace::Selection> selection_of(const std::string& layer, const std::string& files) {
  trace::Selection selection{.layer = {}, .files = files};
  if (layer.empty()) return selection;
  const auto* const found = std::ranges::find(trace::layer_names, layer);
  if (found == std::end(trace::layer_names))
    return fail(ErrorKind::usage, "--layer: '{}': expected one of {}", printable(layer),
                fmt::join(trace::layer_names, ", "));
  selection.layer = static_cast<trace::Layer>(found - std::begin(trace::layer_names));
  return selection;
}

void note_faults(const trace::Trace& trace, const Console& console) {
  for (const trace::UnreadablePart& part : trace.unreadable())
    console.note(fmt::format("left out: {}", part.error.message));
  std::uint64_t lost = 0, cut = 0;
  for (const trace::Part& part : trace.parts()) {
    lost += part.header.lost_calls;
    if (!part.fault) continue;
    if (part.fault->is_cut)
      ++cut;
    else
      console.note(fmt::format("{}: {} at byte {}; the calls before it are read", printable(part.name),
                               part.fault->what, part.fault->at));
  }
  if (cut > 0)
    console.note(fmt::format("{} part{} within a block: still being written, or the process was killed meanwhile", cut,
                             cut == 1 ? " ends" : "s end"));
  if (lost > 0)
    console.note(fmt::format(
        "{} calls could not be recorded: the trace's directory was full, or too many were in flight at once", lost));
  for (const std::string& host : trace.hosts_without_clock())
    console.note(fmt::format("the trace does not say how long a tick of the clock of '{}' is: times are in ticks there",
                             printable(host)));
}

void note_faults(const std::vector<Error>& faults, const Console& console) {
  for (const Error& fault : faults)
    console.note(fmt::format("{}; the later calls of that thread are left out", fault.message));
}

}  // namespace iosig::cli
