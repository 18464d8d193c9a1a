// `iosig plan`: where the regions of files should lie over servers of unlike speed, window by window, and why.
// Changes no user's file; it writes a plan and a region map if it is told to.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/plan.h"
#include "iosig/decide/plan_current.h"
#include "iosig/format/plan_text.h"
#include "iosig/model/described_servers.h"
#include "iosig/regions/planned.h"
#include "iosig/regions/region_map.h"
#include "iosig/storage/activity.h"
#include "picture_file.h"
#include "plan_report.h"
#include "plan_simulation.h"
#include "plan_source.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

constexpr std::size_t listed_regions = 8;
constexpr std::uint64_t max_plan_bytes = std::uint64_t{4} << 30U;

struct PlanArguments {
  PlanSource source;
  std::string show, storage, output, map, current;
  std::string algorithm = "ours", regions = "fixed", windows = "fixed", contention = "auto";
  std::string region_size = "64MB", window = "10min", application;
  std::optional<std::uint32_t> processes, processes_per_node;
  std::uint32_t horizon = 1;
  bool all = false, dry_run = false;
  PlotOptions plot;
};

/// Refuses an output that would replace an input or another output. Must be called before anything is written.
Result<void> check_outputs(const PlanArguments& options) {
  using Output = std::pair<const char*, const std::string&>;
  const Output outputs[] = {{"--output", options.output}, {"--map", options.map}, {"--plot", options.plot.picture}};
  for (const auto& [option, output] : outputs) {
    if (output.empty()) continue;
    for (const auto& [other_option, other] : outputs)
      if (&other != &output && (output == other || is_same_file(output, other)))
        return fail(ErrorKind::usage, "{} and {} both name '{}'", option, other_option, printable(other));
    for (const std::string& input : {options.source.trace, options.storage, options.show, options.current})
      if (is_same_file(output, input))
        return fail(ErrorKind::usage, "'{}' is the input too; name another file for the output", printable(output));
  }
  return {};
}

/// Refuses a count of 0.
Result<void> check_counts(const PlanArguments& options) {
  for (const auto& [name, count] : {std::pair{"--processes", options.processes},
                                    {"--processes-per-node", options.processes_per_node},
                                    {"--horizon", std::optional(options.horizon)}})
    if (count == 0U) return fail(ErrorKind::usage, "{} 0: expected at least 1", name);
  return {};
}

Result<PlanGranularity> granularity_of(const PlanArguments& options) {
  const auto refuse = [](const char* option, const Error& error) {
    return fail(ErrorKind::usage, "{}: {}", option, error.message);
  };
  PlanGranularity granularity;
  const auto window_s = parse_seconds(options.window);
  if (!window_s) return refuse("--window", window_s.error());
  const auto region_bytes = parse_bytes(options.region_size);
  if (!region_bytes) return refuse("--region-size", region_bytes.error());
  if (!(*window_s > 0)) return fail(ErrorKind::usage, "--window {}: expected a time above 0", options.window);
  if (*region_bytes == 0)
    return fail(ErrorKind::usage, "--region-size {}: expected a size above 0", options.region_size);
  return PlanGranularity{*window_s, *region_bytes, options.regions == "adaptive", options.windows == "adaptive"};
}

Result<Plan> stored_plan(const std::string& file) {
  const auto text = read_file(file, max_plan_bytes);
  if (!text) return pass_on(text.error());
  return parse_plan(*text, printable(file));
}

struct MadePlan {
  Plan plan;
  std::optional<Plan> current;  ///< what is in place before it
  std::optional<PlanSimulation> simulation;
};

std::string_view chosen_words(PlanTrial::Chosen chosen) {
  switch (chosen) {
    case PlanTrial::Chosen::spread: break;
    case PlanTrial::Chosen::together: return "the layout is for processes that use the same region at a time";
    case PlanTrial::Chosen::meeting: return "the layout is for processes that want the same bytes at a time";
    case PlanTrial::Chosen::even: return "all regions have the same stripes";
  }
  return "the layout is for processes that use different regions at a time";
}

/// Says which layout won the trial, if it was not the one that the cost model alone would have.
void note_trial(const PlanTrial& trial, const Console& console) {
  if (trial.chosen == PlanTrial::Chosen::spread) return;
  console.note(fmt::format(
      "{}: of {} layouts, simulated with some of the requests, this one takes least time, {} against {} for the layout "
      "that the cost model chooses region by region, because it does not know which requests are there together",
      chosen_words(trial.chosen), trial.layouts, about_seconds(trial.seconds), about_seconds(trial.spread_s)));
}

/// Warns of devices whose times count for servers, and were measured while other programs kept the machine busy.
void note_busy_devices(const Storage& storage, const Console& console) {
  std::set<std::string_view> noted;
  for (const Server& server : storage.servers) {
    const bool has_own_times =
        server.read_startup_s && server.write_startup_s && server.read_bytes_per_s && server.write_bytes_per_s;
    const Device* const device = storage.device_of(server);
    if (has_own_times || device == nullptr || device->busy_share.value_or(0) < busy_share_limit ||
        !noted.insert(device->name).second)
      continue;
    console.note(
        fmt::format("device '{}' of server '{}' was measured while other programs kept the machine {:.0f} % busy, so "
                    "the plan's times "
                    "may be wrong; 'iosig storage probe' on a quiet machine measures it again",
                    printable(device->name), printable(server.name), 100 * *device->busy_share));
  }
}

Result<MadePlan> new_plan(const PlanArguments& options, const Console& console) {
  auto granularity = granularity_of(options);
  if (!granularity) return pass_on(granularity.error());
  std::optional<Plan> current;
  if (!options.current.empty()) {
    auto stored = stored_plan(options.current);
    if (!stored) return pass_on(stored.error());
    granularity->current = &current.emplace(*std::move(stored));
  }
  const auto storage = load_storage(options.storage, console);
  if (!storage) return pass_on(storage.error());
  note_busy_devices(storage->storage, console);
  auto demand = plan_demand(options.source, *granularity, console);
  if (!demand) return pass_on(demand.error());
  const std::uint32_t processes = options.processes.value_or(demand->processes);
  const std::uint32_t per_node = std::min(processes, options.processes_per_node.value_or(demand->processes_per_node));
  const auto servers = described_servers(storage->storage, processes, per_node);
  if (!servers)
    return fail(servers.error().kind, "{}: {}", storage->file.empty() ? "this machine" : printable(storage->file),
                servers.error().message);
  if (current)
    if (const auto put = put_current(*current, servers->servers, demand->input); !put)
      return fail(put.error().kind, "'{}': {}", printable(options.current), put.error().message);
  PlanOptions how;
  how.algorithm = options.algorithm == "paper" ? PlanAlgorithm::paper : PlanAlgorithm::ours;
  if (options.contention != "auto")
    how.contention = options.contention == "together" ? Contention::together : Contention::spread;
  if (processes != demand->processes)
    for (simulate::WindowRequests& window : demand->input.moments) simulate::deal(window.requests, processes);
  how.migration.horizon = options.horizon;
  // A plan is JSON, which holds no other bytes; the map must have the same name.
  how.application = printable(options.application.empty() ? demand->application : options.application);
  auto plan = make_plan(demand->input, *servers, how);
  if (!plan) return pass_on(plan.error());
  if (plan->trial) note_trial(*plan->trial, console);
  MadePlan made{std::move(plan->plan), std::move(current), {}};
  if (!options.source.keeps_requests) return made;
  auto simulation = simulate_plan(made.plan, *demand, how.contention.value_or(Contention::spread));
  if (!simulation) return pass_on(simulation.error());
  made.simulation = *std::move(simulation);
  return made;
}

/// Writes the placements of a plan, or with a current plan continues those that the map has; `dry_run`: only checks
/// that this could be done.
Result<void> write_map(const MadePlan& made, const std::string& file, bool dry_run) {
  if (!made.current)
    return dry_run ? Result<void>{} : regions::store_placements(file, regions::placements_of(made.plan));
  const auto revise = [&](std::span<const regions::MappedPlacement> stored) {
    return regions::continued_placements(made.plan, *made.current, stored);
  };
  if (!dry_run) return regions::revise_placements(file, revise);
  const auto stored = regions::read_region_map(file);
  if (!stored) return pass_on(stored.error());
  if (const auto revised = revise(*stored); !revised)
    return fail(revised.error().kind, "'{}': {}", printable(file), revised.error().message);
  return {};
}

/// Writes the plan and the map, or says what it would write. A map that cannot be continued is refused first.
Result<void> write(const MadePlan& made, const PlanArguments& options, const Console& console) {
  const Plan& plan = made.plan;
  const auto say = [&](const std::string& file, const std::string& what) {
    console.note(fmt::format("{} '{}': {}", options.dry_run ? "would write" : "wrote", printable(file), what));
  };
  if (!options.map.empty()) {
    if (made.current && ::access(options.map.c_str(), F_OK) != 0 && errno == ENOENT)
      return fail(ErrorKind::system,
                  "'{}': there is no such region map to go on with; make it from the current plan first: iosig plan "
                  "--show {} --map {}",
                  printable(options.map), printable(options.current), printable(options.map));
    if (auto possible = write_map(made, options.map, true); !possible) return possible;
  }
  if (!options.output.empty()) {
    const std::string text = plan_text(plan);
    if (!options.dry_run)
      if (auto written = write_output(options.output, text); !written) return written;
    say(options.output, about_bytes(static_cast<double>(text.size())));
  }
  if (options.map.empty()) return {};
  if (!options.dry_run)
    if (auto written = write_map(made, options.map, false); !written) return written;
  say(options.map,
      fmt::format("{} over {}{}", amount_of(plan.files.size(), "file"), amount_of(plan.windows.size(), "window"),
                  made.current ? " after the earlier ones" : ""));
  return {};
}

/// Explains the plan, or draws it here; nothing if the picture is a file.
void say_plan(const Plan& plan, const PlanArguments& options, const Console& console) {
  constexpr std::size_t frame = 10, usual_columns = 80;
  const Screen screen = screen_of(STDOUT_FILENO);
  const std::size_t columns = screen.columns == SIZE_MAX ? usual_columns : std::max(2 * frame, screen.columns);
  const bool has_picture = !options.plot.picture.empty();
  if (options.plot.is_wanted && !has_picture)
    console.say(plan_picture(plan, columns - frame));
  else if (!has_picture || options.dry_run)
    console.say(plan_words(plan, options.all ? SIZE_MAX : listed_regions));
}

int run_plan(const PlanArguments& options, Console& console) {
  if (options.show.empty() && options.source.trace.empty())
    return console.fail(
        {ErrorKind::usage, "--trace is required: a trace, accesses as text or a pattern; or --show PLAN"});
  if (const auto sound = check_counts(options); !sound) return console.fail(sound.error());
  if (const auto sound = check_outputs(options); !sound) return console.fail(sound.error());
  if (!options.show.empty() && (options.source.keeps_requests || !options.current.empty()))
    return console.fail({ErrorKind::usage, "--simulate and --current need --trace: a plan does not keep the requests"});
  if (auto can = check_picture(options.plot, console.json); !can) return console.fail(can.error());
  const auto made = options.show.empty() ? new_plan(options, console) : stored_plan(options.show).map([](Plan&& plan) {
    return MadePlan{std::move(plan), {}, {}};
  });
  if (!made) return console.fail(made.error());
  const Plan& plan = made->plan;
  if (const auto written = write(*made, options, console); !written) return console.fail(written.error());
  if (console.json) {
    nlohmann::ordered_json document = plan_json(plan);
    if (made->simulation) document["simulation"] = simulation_json(*made->simulation);
    console.say_json(plan_schema, document);
  }
  const bool has_picture = !options.plot.picture.empty();
  if (has_picture && options.dry_run)
    console.note(fmt::format("would write '{}': a picture", printable(options.plot.picture)));
  if (!console.json) say_plan(plan, options, console);
  if (!console.json && made->simulation) {
    console.say(simulation_title(*made->simulation));
    console.say(simulation_table(plan, *made->simulation));
  }
  if (has_picture && !options.dry_run) return draw_picture_file(options.plot, "plan", plan_text(plan), {}, console);
  return yes;
}

/// Returns --show, which excludes all that says how to plan.
Option add_input_options(Verb verb, PlanArguments& options) {
  const Option trace =
      verb.add_option("--trace", options.source.trace,
                      "what to plan for: the directory that 'iosig trace -o' made, accesses as CSV or as "
                      "lines of numbers, a pattern; - for standard input")
          .type_name("TRACE");
  const Option show =
      verb.add_option("--show", options.show, "explain a plan that was made before, instead of making one")
          .type_name("PLAN")
          .excludes(trace);
  add_storage_option(verb, options.storage);
  verb.add_option("--current", options.current,
                  "the plan whose last window is in place: moves count from it, and its regions take room")
      .type_name("PLAN");
  verb.add_option("--files", options.source.files, "only files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB")
      .excludes(show);
  verb.add_option("--layer", options.source.layer, "of traces: mpi-io, stdio or posix")
      .check(one_of({"mpi-io", "stdio", "posix"}))
      .shows_default()
      .excludes(show);
  const Option reads = verb.add_flag("--reads", options.source.reads, "only reads").excludes(show);
  verb.add_flag("--writes", options.source.writes, "only writes; numbers and patterns count as writes instead of reads")
      .excludes(reads)
      .excludes(show);
  verb.add_option("--application", options.application, "name for the region map (default: the traced program's)")
      .type_name("NAME")
      .excludes(show);
  verb.add_option("--processes", options.processes, "processes of the run (default: those in TRACE)")
      .type_name("N")
      .excludes(show);
  verb.add_option("--processes-per-node", options.processes_per_node, "of these, on one node")
      .type_name("N")
      .excludes(show);
  return show;
}

}  // namespace

void add_plan(Verb app, Action& action) {
  const Verb verb = app.add_verb("plan", "Plan where regions of files lie over servers of unlike speed");
  const auto options = std::make_shared<PlanArguments>();
  const Option show = add_input_options(verb, *options);
  verb.add_option("-o,--output", options->output, "write the plan").type_name("PLAN");
  verb.add_option("--map", options->map, "write the placements into this region map").type_name("FILE");
  verb.add_flag("--dry-run", options->dry_run, "plan and explain, but write nothing");
  verb.add_option("--algorithm", options->algorithm, "paper: H2DP's, as printed")
      .check(one_of({"ours", "paper"}))
      .shows_default()
      .excludes(show);
  verb.add_option("--regions", options->regions, "adaptive: cut where the use changes")
      .check(one_of({"fixed", "adaptive"}))
      .shows_default()
      .excludes(show);
  verb.add_option("--region-size", options->region_size, "of adaptive regions: the largest")
      .type_name("SIZE")
      .shows_default()
      .excludes(show);
  verb.add_option("--window", options->window, "span of time that is planned together")
      .type_name("TIME")
      .shows_default()
      .excludes(show);
  verb.add_option("--windows", options->windows, "adaptive: neighbours that use the regions alike become one")
      .check(one_of({"fixed", "adaptive"}))
      .shows_default()
      .excludes(show);
  verb.add_option("--contention", options->contention,
                  "spread: processes use different regions at a time; together: all use the same one; auto: "
                  "layouts for both, and the same stripes for all regions, are tried in the simulator with some "
                  "of the requests (without a trace: spread)")
      .check(one_of({"auto", "spread", "together"}))
      .shows_default()
      .excludes(show);
  verb.add_option("--horizon", options->horizon, "windows for which the last layout is expected to last")
      .type_name("N")
      .shows_default()
      .excludes(show);
  verb.add_flag("--all", options->all, fmt::format("list all regions, not {} of each window", listed_regions));
  verb.add_flag("--simulate", options->source.keeps_requests,
                "also simulate the requests, by the plan and with stripes of 64 KB over all servers (or as CURRENT)");
  add_plot_option(verb, options->plot, "draw how much each region is used and where it lies, a row for each window");
  verb.footer(
      "Changes nothing but PLAN and FILE. The servers are the [[server]]s of the storage description.\n"
      "Example: iosig plan --trace job.trace --storage servers.toml -o job.plan");
  verb.when_chosen(action, plan_schema, [options](Console& console) { return run_plan(*options, console); });
}

}  // namespace iosig::cli
