// What the verbs share: a workload with its parameters from the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "console.h"
#include "workloads.h"

namespace iosig::workloads {

/// As typed.
struct Told {
  std::string name;
  std::optional<std::uint32_t> ranks;
  std::uint64_t seed = 1;
  std::map<std::string, std::string, std::less<>> values;
};

/// NAME, --ranks, --seed, and an option for every parameter that some workload has.
void add_workload_options(CLI::App& verb, const std::shared_ptr<Told>& told);

/// `bad_input` as make_plan; `ranks` replaces the usual number of ranks where none was told.
[[nodiscard]] Result<Plan> plan_of(const Told& told, std::uint32_t ranks = Parameters{}.ranks);

/// Set by the verb that was chosen: what main runs after parsing.
using Action = std::function<int(cli::Console&)>;

void add_list(CLI::App& app, Action& action);
void add_print(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);

/// "workloads: ..." to stderr; the exit status for the error's kind.
[[nodiscard]] int failed(const Error& error);

}  // namespace iosig::workloads
