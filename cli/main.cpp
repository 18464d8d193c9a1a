// `iosig`: finds the verb, runs it, and returns its exit status.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "commands.h"
#include "external.h"
#include "help.h"
#include "program.h"
#include "usage.h"

namespace {

using namespace iosig::cli;

/// The verb that the command line begins with.
struct NamedVerb {
  std::string name;  ///< "query-sql" for `iosig query sql`
  int words = 0;     ///< that name it
  bool is_python = false;
  bool is_external = false;  ///< another program may be it
};

NamedVerb named_verb(const CLI::App& app, int argc, char** argv) {
  NamedVerb named;
  const CLI::App* verb = &app;
  while (!named.is_python && named.words + 1 < argc) {
    const auto found =
        verb->get_subcommands([&](const CLI::App* each) { return each->check_name(argv[named.words + 1]); });
    if (found.empty()) break;
    verb = found.front();
    named.name += (named.words > 0 ? "-" : "") + verb->get_name();
    ++named.words;
    named.is_python = verb->get_group() == python_group;
  }
  named.is_external = named.is_python || named.words == 0;
  if (named.words == 0 && argc > 1) {
    named.name = argv[1];
    named.words = 1;
  }
  return named;
}

}  // namespace

int main(int argc, char** argv) {
  open_missing_streams();
  reset_ignored_signals();
  CLI::App app("IOSIG: puts every stream's bytes on the storage that serves them best", "iosig");
  app.formatter(std::make_shared<HelpFormatter>());  // all verbs inherit it, and the help flag
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", "iosig " IOSIG_VERSION, "print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Manual: man iosig\n"
      "Example: iosig storage probe && iosig choose 'persist random size-per-IO(64KB)'");
  Console console;
  Action action;
  const Verb root(app);
  add_verbs(root, action, argc > 1 ? argv[1] : "");
  if (argc > 1 && std::string_view(argv[1]) == "help" && (argc == 2 || argv[2][0] != '-')) {
    static char help[] = "--help";
    std::rotate(argv + 1, argv + 2, argv + argc);  // `iosig help choose` is `iosig choose --help`
    argv[argc - 1] = help;
  }
  const NamedVerb named = named_verb(app, argc, argv);
  if (named.is_external && argc > 1) run_external_verb(named.name, argv + named.words - 1);
  if (named.is_python) return console.fail({iosig::ErrorKind::usage, python_package_missing(named.name)});
  try {
    app.parse(argc, argv);
    if (const auto checked = check_values(app); !checked) return console.finish(console.fail(checked.error()));
    return console.finish(action ? action(console) : static_cast<int>(wrong_usage));
  } catch (const CLI::ParseError& error) {
    const iosig::Error wrong = wrong_call(app, error);
    if (!wrong.message.empty()) return console.finish(console.fail(wrong));
    std::string text = dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr ? app.version() + "\n" : app.help();
    text.pop_back();
    console.say(text);
    return console.finish(yes);
  } catch (const std::exception& error) {
    return console.fail({iosig::ErrorKind::system, fmt::format("internal error: {}", error.what())});
  }
}
