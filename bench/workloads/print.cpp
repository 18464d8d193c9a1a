// `workloads list` and `workloads print`: what there is, and its accesses as lines of numbers.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "options.h"

namespace iosig::workloads {
namespace {

using nlohmann::ordered_json;

std::string usual_text(const Parameter& parameter) {
  return parameter.is_size ? bytes_text(parameter.value) : std::to_string(parameter.value);
}

ordered_json json_of(const Workload& workload) {
  ordered_json parameters = ordered_json::array();
  for (const Parameter& parameter : workload.parameters)
    parameters.push_back({{"name", parameter.name},
                          {"value", parameter.value},
                          {"unit", parameter.is_size ? "bytes" : "count"},
                          {"meaning", parameter.meaning}});
  return {{"name", workload.name}, {"what", workload.what}, {"source", workload.source}, {"parameters", parameters}};
}

int run_list(const std::string& name, const cli::Console& console) {
  std::span<const Workload> shown = catalogue();
  if (!name.empty()) {
    const auto found = find_workload(name);
    if (!found) return failed(found.error());
    shown = std::span(*found, 1);
  }
  if (console.json) {
    ordered_json all = ordered_json::array();
    for (const Workload& workload : shown) all.push_back(json_of(workload));
    console.say_json("iosig.workloads/1", {{"workloads", all}});
    return cli::yes;
  }
  if (name.empty()) {
    cli::Table table({"workload", "what"});
    for (const Workload& workload : shown) table.add({std::string(workload.name), std::string(workload.what)});
    console.say(table.text());
    return cli::yes;
  }
  const Workload& workload = shown.front();
  cli::Table table({"parameter", "usual", "meaning"});
  for (const Parameter& parameter : workload.parameters)
    table.add({fmt::format("--{}", parameter.name), usual_text(parameter), std::string(parameter.meaning)});
  console.say(fmt::format("{}: {}\nlike {}\n\n{}", workload.name, workload.what, workload.source, table.text()));
  return cli::yes;
}

enum class Column { logical, length, physical, id };
constexpr std::array<std::string_view, 4> column_names{"logical", "length", "physical", "id"};

Result<std::vector<Column>> parse_columns(std::string_view text) {
  std::vector<Column> columns;
  for (const std::string_view word : split(text, ',')) {
    const auto known = std::ranges::find(column_names, word);
    if (known == column_names.end())
      return fail(ErrorKind::bad_input,
                  "--columns: there is no column '{}'{}; expected some of logical, length, "
                  "physical, id with commas between them",
                  printable(word), did_you_mean(word, column_names));
    columns.push_back(static_cast<Column>(known - column_names.begin()));
  }
  return columns;
}

struct PrintOptions {
  std::string columns = "logical,length,physical,id", order = "rank";
  std::int64_t rank = -1;  ///< -1: all
};

std::uint64_t value_of(const Access& access, Column column) {
  switch (column) {
    case Column::logical: return access.logical_bytes;
    case Column::length: return access.length_bytes;
    case Column::physical: return access.physical_bytes;
    case Column::id: return access.rank;
  }
  return 0;
}

int run_print(const Told& told, const PrintOptions& options) {
  const auto plan = plan_of(told);
  if (!plan) return failed(plan.error());
  const auto columns = parse_columns(options.columns);
  if (!columns) return failed(columns.error());
  if (options.rank >= static_cast<std::int64_t>(plan->ranks))
    return failed(
        {ErrorKind::bad_input, fmt::format("--rank {}: there are ranks 0 to {}", options.rank, plan->ranks - 1)});
  const auto first = static_cast<std::uint32_t>(std::max<std::int64_t>(options.rank, 0));
  const std::uint32_t last = options.rank < 0 ? plan->ranks : first + 1;

  constexpr std::size_t enough = 1u << 16;
  fmt::memory_buffer lines;
  Result<void> written;
  const auto flush = [&] {
    written = write_all(STDOUT_FILENO, {lines.data(), lines.size()}, "standard output");
    lines.clear();
    return written.has_value();
  };
  generate(*plan, options.order == "round" ? Order::round : Order::rank, first, last, [&](const Access& access) {
    for (const Column column : *columns) {
      const fmt::format_int text(value_of(access, column));
      lines.append(text.data(), text.data() + text.size());
      lines.push_back(' ');
    }
    lines.data()[lines.size() - 1] = '\n';
    return lines.size() < enough || flush();
  });
  if (written) flush();
  return written ? static_cast<int>(cli::yes) : failed(written.error());
}

}  // namespace

void add_list(cli::Verb app, cli::Action& action) {
  const cli::Verb verb = app.add_verb("list", "Show the workloads, or one's parameters and where they come from");
  const auto name = std::make_shared<std::string>();
  verb.add_option("NAME", *name, "Only this one, in full");
  verb.footer("Example: workloads list btio");
  verb.when_chosen(action, "iosig.workloads/1", [=](cli::Console& console) { return run_list(*name, console); });
}

void add_print(cli::Verb app, cli::Action& action) {
  const cli::Verb verb = app.add_verb("print", "Print every access, a line of numbers each");
  const auto told = std::make_shared<Told>();
  const auto options = std::make_shared<PrintOptions>();
  add_workload_options(verb, told);
  verb.add_option("--rank", options->rank, "Only this rank's").type_name("N").check(cli::count_between(0, UINT32_MAX));
  verb.add_option("--columns", options->columns,
                  "Of logical and physical offset, length, id; logical,length,physical,id unless given")
      .type_name("NAMES");
  verb.add_option("--order", options->order,
                  "One rank after the other, or an access of each in turn; rank unless given")
      .check(cli::one_of({"rank", "round"}));
  verb.footer("Example: workloads print btio --ranks 4 --grid 12 --steps 2 --order round");
  verb.when_chosen(action, "", [=](cli::Console&) { return run_print(*told, *options); });
}

}  // namespace iosig::workloads
