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

}  // namespace iosig::cli
