// The --plot option of `iosig pattern` (picture_file.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console.h"
#include "iosig/model/pattern.h"
#include "picture_file.h"
#include "verb.h"

namespace iosig::cli {

/// Adds --plot[=PICTURE].
void add_plot_option(Verb verb, PlotOptions& plot);

/// Call before the input is read. Moves an argument that --plot took, but that names no picture, to the empty `file` of
/// `iosig pattern VERB`. Fails with `usage` if the plot cannot be drawn.
[[nodiscard]] Result<void> check_plot(PlotOptions& plot, std::string& file, std::string_view verb, bool json);

/// Draws the pattern on the terminal and returns the exit status. For a file it executes the plotting program in place
/// of this one. `names` are the column names; may be empty.
int draw_plot(const PlotOptions& plot, const Pattern& pattern, const std::vector<std::string>& names,
              const Console& console);

}  // namespace iosig::cli
