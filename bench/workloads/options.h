// What the verbs share: a workload with its parameters from the command line.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "verb.h"
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
void add_workload_options(cli::Verb verb, const std::shared_ptr<Told>& told);

/// `bad_input` as make_plan; `ranks` replaces the usual number of ranks where none was told.
[[nodiscard]] Result<Plan> plan_of(const Told& told, std::uint32_t ranks = Parameters{}.ranks);

void add_list(cli::Verb app, cli::Action& action);
void add_print(cli::Verb app, cli::Action& action);
void add_run(cli::Verb app, cli::Action& action);

/// "workloads: ..." to stderr; the exit status for the error's kind.
[[nodiscard]] int failed(const Error& error);

}  // namespace iosig::workloads
