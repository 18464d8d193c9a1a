#include "options.h"

#include <algorithm>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::workloads {

void add_workload_options(cli::Verb verb, const std::shared_ptr<Told>& told) {
  verb.add_option("NAME", told->name, "The workload; workloads list shows them").required();
  verb.add_option("--ranks", told->ranks, "Processes, or what stands for them; 16 unless given").type_name("N");
  verb.add_option("--seed", told->seed, "Of zipf and random; 1 unless given").type_name("N");
  std::map<std::string, const Parameter*, std::less<>> all;
  for (const Workload& workload : catalogue())
    for (const Parameter& parameter : workload.parameters) all.emplace(parameter.name, &parameter);
  for (const auto& [name, parameter] : all)
    verb.add_option(
            "--" + name, [told, key = name](const std::string& text) { told->values[key] = text; },
            "Of some workloads: workloads list NAME")
        .type_name(parameter->is_size ? "SIZE" : "N")
        .group("Parameters");
}

Result<Plan> plan_of(const Told& told, std::uint32_t ranks) {
  const auto workload = find_workload(told.name);
  if (!workload) return pass_on(workload.error());
  Parameters parameters{.ranks = told.ranks.value_or(ranks), .seed = told.seed, .values = {}};
  for (const auto& [name, text] : told.values) {
    const auto& known = (*workload)->parameters;
    const auto parameter = std::ranges::find(known, name, &Parameter::name);
    std::uint64_t value = 0;
    if (parameter != known.end() && parameter->is_size) {
      const auto size = parse_bytes(text);
      if (!size) return fail(ErrorKind::bad_input, "--{}: {}", name, size.error().message);
      value = *size;
    } else if (parameter != known.end()) {
      const auto count = parse_count<std::uint64_t>(text);
      if (!count) return fail(ErrorKind::bad_input, "--{} '{}': expected a whole number", name, printable(text));
      value = *count;
    }
    parameters.values[name] = value;  // of one that the workload does not have, make_plan tells
  }
  return make_plan(**workload, std::move(parameters));
}

int failed(const Error& error) {
  fmt::print(stderr, "workloads: {}\n", error.message);
  return cli::exit_status(error.kind);
}

}  // namespace iosig::workloads
