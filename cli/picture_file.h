// The --plot option: draws on the terminal, or has the Python package write a file (external.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console.h"
#include "verb.h"

namespace iosig::cli {

struct PlotOptions {
  bool is_wanted = false;
  std::string picture;  ///< output file; empty: the terminal
};

/// Adds --plot[=PICTURE]. `help`: what is drawn.
void add_plot_option(Verb verb, PlotOptions& plot, std::string_view help);

[[nodiscard]] bool names_a_picture(std::string_view file);

/// Call before the input is read. Fails with `usage` if the plot cannot be drawn.
[[nodiscard]] Result<void> check_picture(const PlotOptions& plot, bool json);

/// Executes `iosig plot KIND - --output PICTURE` in place of this program, with `input` as its standard input and more
/// arguments. Returns only if that fails: the exit status.
int draw_picture_file(const PlotOptions& plot, const std::string& kind, std::string_view input,
                      const std::vector<std::string>& more, const Console& console);

}  // namespace iosig::cli
