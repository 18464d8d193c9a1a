#include "trace_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "iosig/base/text.h"
#include "iosig/trace/notes.h"

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
  for (const std::string& note : trace::notes_on(trace)) console.note(note);
}

void note_faults(const std::vector<Error>& faults, const Console& console) {
  for (const Error& fault : faults) console.note(trace::note_on_fault(fault.message));
}

}  // namespace iosig::cli
