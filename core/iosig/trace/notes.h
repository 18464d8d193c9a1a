// What is missing in a trace, in sentences for the user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace {

/// Returns a note for each part that cannot be read or is damaged, for lost calls, and for durations that cannot be
/// known.
[[nodiscard]] std::vector<std::string> notes_on(const Trace& trace);

/// Returns the note on a block that cannot be read; `message` is that of the error.
[[nodiscard]] std::string note_on_fault(std::string_view message);

}  // namespace iosig::trace
