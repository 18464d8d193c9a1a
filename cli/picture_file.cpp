#include "picture_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "external.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

/// Makes the bytes this process's standard input, for the program that it then executes.
Result<void> hand_on(std::string_view bytes) {
  const Fd memory(::memfd_create("iosig-plot", MFD_CLOEXEC));
  if (!memory) return system_failure("make", "memory for the picture");
  if (auto written = write_all(memory.get(), bytes, "memory for the picture"); !written) return written;
  if (::lseek(memory.get(), 0, SEEK_SET) < 0 || ::dup2(memory.get(), STDIN_FILENO) < 0)
    return system_failure("pass on", "what is drawn");
  return {};
}

}  // namespace

void add_plot_option(Verb verb, PlotOptions& plot, std::string_view help) {
  const auto take = [&plot](const std::string& picture) {
    plot.is_wanted = true;
    plot.picture = picture;
  };
  verb.add_option("--plot", take, fmt::format("{}: here, or into a file .png or .html", help))
      .type_name("[PICTURE]")
      .takes(0, 1);
}

bool names_a_picture(std::string_view file) { return file.ends_with(".png") || file.ends_with(".html"); }

Result<void> check_picture(const PlotOptions& plot, bool json) {
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

int draw_picture_file(const PlotOptions& plot, const std::string& kind, std::string_view input,
                      const std::vector<std::string>& more, const Console& console) {
  if (const auto handed = hand_on(input); !handed) return console.fail(handed.error());
  if (const auto said = console.flush(); !said) return yes;      // main() reports the error
  if (console.json && ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)  // its messages must not be in the JSON document
    return console.fail(system_failure("redirect", "standard output").value());
  std::vector<std::string> words = {"iosig", "plot", kind, "-", "--output", plot.picture};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  run_external_verb("plot", arguments.data());
  return console.fail({ErrorKind::usage, python_package_missing("plot")});
}

}  // namespace iosig::cli
