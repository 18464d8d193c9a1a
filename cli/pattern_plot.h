// --plot of `iosig pattern`: the picture on the terminal, or as a file by the Python package (external.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console.h"
#include "iosig/model/pattern.h"
#include "verb.h"

namespace iosig::cli {

struct PlotOptions {
  bool is_wanted = false;
  std::string picture;  ///< a file; empty: the terminal
};

/// --plot[=PICTURE].
void add_plot_option(Verb verb, PlotOptions& plot);

/// Before the input is read: gives `file`, that of `iosig pattern VERB`, what --plot took for its picture, and refuses
/// as `usage` what cannot be drawn.
[[nodiscard]] Result<void> check_plot(PlotOptions& plot, std::string& file, std::string_view verb, bool json);

/// Draws. `names`: of the columns; may be empty. A file is drawn by another program, which this one becomes; else
/// returns the exit status.
int draw_plot(const PlotOptions& plot, const Pattern& pattern, const std::vector<std::string>& names,
              const Console& console);

}  // namespace iosig::cli
