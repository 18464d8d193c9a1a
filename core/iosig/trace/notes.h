// What is missing in a trace, in sentences for the user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace {

/// Which clocks notes_on() names: those that could not be aligned, too, or only those whose times were shifted.
enum class NamedClocks { all, shifted };

/// Returns a note for each part that cannot be read or is damaged, for lost calls, for durations that cannot be known,
/// and for clocks of hosts that differ.
[[nodiscard]] std::vector<std::string> notes_on(const Trace& trace, NamedClocks clocks = NamedClocks::all);

/// Returns the note on a block that cannot be read; `message` is that of the error.
[[nodiscard]] std::string note_on_fault(std::string_view message);

}  // namespace iosig::trace
