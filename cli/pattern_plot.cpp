#include "pattern_plot.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "external.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "pattern_picture.h"

namespace iosig::cli {
namespace {

bool names_a_picture(std::string_view file) { return file.ends_with(".png") || file.ends_with(".html"); }

/// Makes the description this process's standard input, for the program that it then executes.
Result<void> hand_on(const Pattern& pattern) {
  const std::vector<std::uint8_t> bytes = pattern_bytes(pattern);
  const Fd memory(::memfd_create("iosig-pattern", MFD_CLOEXEC));
  if (!memory) return system_failure("make", "memory for the pattern");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (auto written = write_all(memory.get(), text, "memory for the pattern"); !written) return written;
  if (::lseek(memory.get(), 0, SEEK_SET) < 0 || ::dup2(memory.get(), STDIN_FILENO) < 0)
    return system_failure("pass on", "the pattern");
  return {};
}

}  // namespace

void add_plot_option(Verb verb, PlotOptions& plot) {
  const auto take = [&plot](const std::string& picture) {
    plot.is_wanted = true;
    plot.picture = picture;
  };
  verb.add_option("--plot", take, "draw logical offset over position: here, or into a file .png or .html")
      .type_name("[PICTURE]")
      .takes(0, 1);
}

Result<void> check_plot(PlotOptions& plot, std::string& file, std::string_view verb, bool json) {
  if (plot.is_wanted && file.empty() && !names_a_picture(plot.picture)) file = std::exchange(plot.picture, "");
  if (file.empty())
    return fail(ErrorKind::usage,
                "FILE is required: a description, or - for standard input; see 'iosig pattern {} --help'", verb);
  if (!plot.is_wanted) return {};
  if (plot.picture.empty() && json)
    return fail(ErrorKind::usage, "--plot draws here, where --json prints; name a file for the picture");
  if (plot.picture.empty()) return {};
  if (!names_a_picture(plot.picture))
    return fail(ErrorKind::usage, "--plot '{}': expected a name that ends in .png or .html", printable(plot.picture));
  if (external_verb("plot").empty())
    return fail(ErrorKind::usage, "--plot {}: {}", printable(plot.picture), python_package_missing("plot"));
  return {};
}

int draw_plot(const PlotOptions& plot, const Pattern& pattern, const std::vector<std::string>& names,
              const Console& console) {
  if (plot.picture.empty()) {
    console.say(pattern_picture(pattern, names, picture_style()));
    return yes;
  }
  if (const auto handed = hand_on(pattern); !handed) return console.fail(handed.error());
  if (const auto said = console.flush(); !said) return yes;      // main() reports the error
  if (console.json && ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)  // its messages must not be in the JSON document
    return console.fail(system_failure("redirect", "standard output").value());
  std::vector<std::string> words = {"iosig", "plot", "pattern", "-", "--output", plot.picture};
  if (!names.empty()) words.insert(words.end(), {"--columns", fmt::format("{}", fmt::join(names, ","))});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  run_external_verb("plot", arguments.data());
  return console.fail({ErrorKind::usage, python_package_missing("plot")});
}

}  // namespace iosig::cli
