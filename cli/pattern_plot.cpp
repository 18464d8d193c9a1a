#include "pattern_plot.h"

#include <fmt/ranges.h>

#include <utility>

#include "iosig/format/pattern_binary.h"
#include "pattern_picture.h"

namespace iosig::cli {

void add_plot_option(Verb verb, PlotOptions& plot) { add_plot_option(verb, plot, "draw logical offset over position"); }

Result<void> check_plot(PlotOptions& plot, std::string& file, std::string_view verb, bool json) {
  if (plot.is_wanted && file.empty() && !names_a_picture(plot.picture)) file = std::exchange(plot.picture, "");
  if (file.empty())
    return fail(ErrorKind::usage,
                "FILE is required: a description, or - for standard input; see 'iosig pattern {} --help'", verb);
  return check_picture(plot, json);
}

int draw_plot(const PlotOptions& plot, const Pattern& pattern, const std::vector<std::string>& names,
              const Console& console) {
  if (plot.picture.empty()) {
    console.say(pattern_picture(pattern, names, picture_style()));
    return yes;
  }
  const std::vector<std::uint8_t> bytes = pattern_bytes(pattern);
  std::vector<std::string> more;
  if (!names.empty()) more = {"--columns", fmt::format("{}", fmt::join(names, ","))};
  return draw_picture_file(plot, "pattern", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, more, console);
}

}  // namespace iosig::cli
