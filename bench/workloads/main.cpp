// workloads {list, print, run}: the accesses of well-known parallel programs, printed or performed
// (docs/howto/workloads.md). workloads_mpi is the same `run` with MPI's processes as ranks.

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>

#include "options.h"
#include "worker_group.h"

int main(int argc, char** argv) {
  using namespace iosig;
  cli::open_missing_streams();
  std::signal(SIGPIPE, SIG_DFL);  // `workloads print random | head` ends quietly
  const std::string name = workloads::is_mpi_program ? "workloads_mpi" : "workloads";
  CLI::App app("The accesses of well-known parallel programs.", name);
  app.require_subcommand(1);
  app.failure_message([&](const CLI::App*, const CLI::Error& error) {
    return fmt::format("workloads: {}; see {} --help\n", error.what(), name);
  });
  cli::Console console;
  cli::Action action;
  const cli::Verb root(app);
  if (!workloads::is_mpi_program) {
    workloads::add_list(root, action);
    workloads::add_print(root, action);
  }
  workloads::add_run(root, action);
  const auto finish = [&](int status) {
    const auto written = console.flush();
    return written ? status : workloads::failed(written.error());
  };
  try {
    app.parse(argc, argv);
    return finish(action ? action(console) : static_cast<int>(cli::wrong_usage));
  } catch (const CLI::ParseError& error) {
    return finish(app.exit(error) == 0 ? cli::yes : cli::wrong_usage);
  } catch (const std::exception& error) {
    fmt::print(stderr, "workloads: {}\n", error.what());
    return cli::system_refused;
  }
}
