// `iosig`: finds the verb, runs it, and turns what happened into an exit status.

#include <fmt/format.h>

#include <csignal>
#include <exception>

#include "commands.h"

int main(int argc, char** argv) {
  using namespace iosig::cli;
  std::signal(SIGPIPE, SIG_DFL);  // `iosig storage list | head` ends quietly
  CLI::App app("IOSIG: puts every stream's bytes on the storage that serves them best.", "iosig");
  app.set_version_flag("--version", "iosig " IOSIG_VERSION);
  app.require_subcommand(1);
  app.footer("Start with: iosig storage probe && iosig choose 'persist random size-per-IO(64KB)'\nManual: man iosig");
  Console console;
  Action action;
  add_storage(app, action);
  add_cc(app, action);
  add_choose(app, action);
  add_prepare(app, action);
  add_finalize(app, action);
  add_status(app, action);
  add_completion(app, action);
  add_man(app, action);
  try {
    app.parse(argc, argv);
    return action ? action(console) : static_cast<int>(wrong_usage);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(yes) : static_cast<int>(wrong_usage);
  } catch (const std::exception& error) {
    fmt::print(stderr, "iosig: internal error: {}\n", error.what());
    return system_refused;
  }
}
