// The verbs, in pipeline order. Each lives in its own cmd_*.cpp: it declares its options and sets what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

#include "console.h"

namespace iosig::cli {

/// Set by the verb that was chosen; main runs it after parsing and returns its exit status.
using Action = std::function<int(Console&)>;

/// Makes `run` the action once `verb` is chosen. `document`: the schema that --json prints; empty: there is no --json.
void when_chosen(CLI::App* verb, Action& action, std::string_view document, Action run);

void add_storage(CLI::App& app, Action& action);
void add_cc(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_choose(CLI::App& app, Action& action);
void add_reliability(CLI::App& app, Action& action);
void add_pattern(CLI::App& app, Action& action);
void add_container(CLI::App& app, Action& action);
void add_mount(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_prepare(CLI::App& app, Action& action);
void add_finalize(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_recover(CLI::App& app, Action& action);
void add_gc(CLI::App& app, Action& action);
void add_verify_file(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_man(CLI::App& app, Action& action);
void add_plot(CLI::App& app);
void add_repro(CLI::App& app);
void add_help(CLI::App& app);

}  // namespace iosig::cli
