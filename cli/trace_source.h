// Traces as the input of verbs: the options that select calls, and the notes about what is missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/observe/system_files.h"
#include "iosig/trace/trace.h"
#include "verb.h"

namespace iosig::cli {

/// Adds --layer and --files.
void add_selection_options(Verb verb, std::string& layer, std::string& files);
/// Returns what the two options select; `usage` if there is no such layer.
[[nodiscard]] Result<trace::Selection> selection_of(const std::string& layer, const std::string& files);

using observe::is_of_system;

/// Notes parts that cannot be read or are damaged, lost calls, and durations that cannot be known.
void note_faults(const trace::Trace& trace, const Console& console);

/// Notes blocks that cannot be read.
void note_faults(const std::vector<Error>& faults, const Console& console);

}  // namespace iosig::cli
