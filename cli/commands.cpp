#include "commands.h"

#include <fmt/format.h>

#include <memory>

namespace iosig::cli {

void when_chosen(CLI::App* verb, Action& action, std::string_view document, Action run) {
  const auto json = std::make_shared<bool>(false);
  if (!document.empty()) verb->add_flag("--json", *json, fmt::format("print one JSON document, {}", document));
  verb->callback([=, &action, run = std::move(run)] {
    action = [=](Console& console) {
      console.json = *json;
      return run(console);
    };
  });
}

/// For the list of verbs alone: main reads `iosig help VERB` as `iosig VERB --help`.
void add_help(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("help", "Show the help of a command");
  verb->add_option("VERB", "a command, e.g. choose or container ls")->expected(0, 2);
  verb->footer("Example: iosig help container ls");
}

}  // namespace iosig::cli
