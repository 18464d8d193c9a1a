// `iosig`: finds the verb, runs it, and turns what happened into an exit status.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "commands.h"
#include "external.h"
#include "iosig/base/text.h"

namespace {

/// A wrong call in our words: what was not understood, the nearest verb or option, and where the help is.
std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  std::string command = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    command += " " + app->get_name();
  }
  std::string message = error.what();
  const std::vector<std::string> words = app->remaining();
  const std::string_view word = words.empty() ? std::string_view{} : words.front();
  const auto verbs = app->get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
  if (word.starts_with("-") || (!word.empty() && !verbs.empty())) {
    std::vector<std::string> known;
    if (word.starts_with("-"))
      for (const CLI::Option* option : app->get_options())
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    else
      for (const CLI::App* verb : verbs) known.push_back(verb->get_name());
    const std::vector<std::string_view> names(known.begin(), known.end());
    message = fmt::format("'{}' is no {} of {}{}", iosig::printable(word), word.starts_with("-") ? "option" : "verb",
                          command, iosig::did_you_mean(word, names));
  }
  return fmt::format("iosig: {}; see {} --help\n", message, command);
}

/// `--storage "$UNSET"` would be as if it were not there, and the verb at work on something else. Options whose value
/// may be left out (--plot) are not asked.
iosig::Result<void> check_values(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) {
    for (const CLI::Option* option : verb->get_options())
      if (option->nonpositional() && option->get_expected_min() > 0 && option->count() > 0 &&
          std::ranges::count(option->results(), "") > 0)
        return iosig::fail(iosig::ErrorKind::usage, "{} is empty; give it a value or leave it out", option->get_name());
    if (auto checked = check_values(*verb); !checked) return checked;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace iosig::cli;
  open_missing_streams();
  std::signal(SIGPIPE, SIG_DFL);  // `iosig storage list | head` ends quietly
  std::signal(SIGCHLD, SIG_DFL);  // who starts this may have ignored it; then the status of tools would be lost
  CLI::App app("IOSIG: puts every stream's bytes on the storage that serves them best.", "iosig");
  app.set_version_flag("--version", "iosig " IOSIG_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_message);
  app.footer(
      "Start with: iosig storage probe && iosig choose 'persist random size-per-IO(64KB)'\n"
      "Manual: man iosig");
  Console console;
  Action action;
  add_storage(app, action);
  add_cc(app, action);
  add_check(app, action);
  add_choose(app, action);
  add_reliability(app, action);
  add_pattern(app, action);
  add_container(app, action);
  add_mount(app, action);
  add_run(app, action);
  add_replay(app, action);
  add_prepare(app, action);
  add_finalize(app, action);
  add_status(app, action);
  add_recover(app, action);
  add_gc(app, action);
  add_verify_file(app, action);
  add_completion(app, action);
  add_man(app, action);
  add_plot(app);
  add_repro(app);
  const auto ours = app.get_subcommands([&](const CLI::App* verb) { return argc > 1 && verb->check_name(argv[1]); });
  const bool is_python = !ours.empty() && ours.front()->get_group() == python_group;
  if (argc > 1 && (ours.empty() || is_python)) run_external_verb(argv[1], argv);
  if (is_python) {
    fmt::print(stderr, "iosig: {}\n", python_package_missing(argv[1]));
    return wrong_usage;
  }
  try {
    app.parse(argc, argv);
    if (const auto checked = check_values(app); !checked) return console.finish(console.fail(checked.error()));
    return console.finish(action ? action(console) : static_cast<int>(wrong_usage));
  } catch (const CLI::ParseError& error) {
    return console.finish(app.exit(error) == 0 ? yes : wrong_usage);
  } catch (const std::exception& error) {
    fmt::print(stderr, "iosig: internal error: {}\n", error.what());
    return system_refused;
  }
}
