// `iosig advise`: what would make a traced run spend less time in its I/O.

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>

#include "commands.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/redirect.h"
#include "iosig/format/signature_text.h"
#include "iosig/observe/advise.h"
#include "iosig/observe/merged_accesses.h"
#include "open_lines.h"
#include "policy_options.h"
#include "query_options.h"
#include "storage_source.h"
#include "trace_source.h"
#include "traced_run.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;
using observe::Advice;
using observe::RunAdvice;

constexpr const char* advice_schema = "iosig.advice/1";

struct AdviseArguments {
  std::vector<std::string> directories;
  std::string storage, files, ranks, min_gain = "5%";
  bool why = false, all = false;
};

/// The traces of one run, and what was read of them.
struct Evidence {
  std::vector<trace::Trace> traces = {};
  observe::TracedRun run = {};
  observe::RunCosts costs = {};
};

/// Opens the traces. Fails with `usage` if two have a process in common.
Result<void> open_traces(const AdviseArguments& options, Evidence& evidence, const Console& console) {
  auto opened = trace::open_traces(options.directories);
  if (!opened) return pass_on(opened.error());
  for (const trace::Trace& each : *opened) {
    note_faults(each, console);
    add_trace(each, evidence.run);
  }
  evidence.traces = std::move(*opened);
  return observe::check_distinct(evidence.traces);
}

using Ranks = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Reads the accesses of the selected ranks. Of the files that are not selected, only the time counts.
void gather(const AdviseArguments& options, const Ranks& ranks, Evidence& evidence, const Console& console) {
  trace::Selection selection;
  if (!ranks.empty())
    selection.processes = [&](const trace::Process& process) {
      return process.rank && std::ranges::any_of(ranks, [&](const auto& range) {
               return range.first <= *process.rank && *process.rank <= range.second;
             });
    };
  std::vector<Error> faults;
  observe::FactGatherer facts;
  observe::CostGatherer costs;
  observe::MergedAccesses accesses(evidence.traces, selection, INT64_MIN, faults);
  while (const trace::Access* const access = accesses.next()) {
    facts.add(*access);
    costs.add(*access);
  }
  note_faults(faults, console);
  evidence.run.is_complete = evidence.run.is_complete && faults.empty();
  evidence.run.facts = facts.finish();
  evidence.costs = std::move(costs).finish();
  set_times(accesses.started_ns(), evidence.costs.wall_ns, evidence.run);
  const auto is_left_out = [&](const auto& each) {
    return (!options.files.empty() && !trace::matches_file(options.files, each.path)) ||
           (!options.all && is_of_system(each.path));
  };
  std::erase_if(evidence.run.facts, is_left_out);
  std::erase_if(evidence.costs.streams, is_left_out);
}

/// The storage description's answers about this machine.
class Machine {
 public:
  static Result<Machine> described(const std::string& option) {
    auto applied = read_applied_storage(option);
    if (!applied) return pass_on(applied.error());
    Machine made;
    if (*applied) {
      made.storage_ = std::make_shared<Storage>(std::move((*applied)->storage));
      made.file = (*applied)->file.path;
    }
    return made;
  }

  [[nodiscard]] std::string no_gain() const {
    return file.empty() ? "there is no storage description: 'iosig storage probe' makes one"
                        : fmt::format("the path is on no mount point of {}", printable(file));
  }

  [[nodiscard]] std::optional<observe::Storing> storing(const std::string& path) const {
    if (!storage_) return std::nullopt;
    const auto home = home_at(path);
    const MountPoint* const mount = home ? described_at(*home, *storage_) : nullptr;
    const Device* const device = mount == nullptr ? nullptr : storage_->find_device(mount->device);
    if (device == nullptr) return std::nullopt;
    return observe::Storing{device, mount->block_bytes};
  }

  [[nodiscard]] std::optional<Choice> choose(const std::string& path, const std::string& signature) const {
    if (!storage_) return std::nullopt;
    const auto wanted = parse_signature(signature);
    const auto home = home_at(path);
    if (!wanted || !home) return std::nullopt;
    const auto given =
        circumstances_at(&*home, *wanted, *storage_, {.residence = Residence::home}, [] { return ask_page_cache(); });
    if (!given) return std::nullopt;
    Choice choice = choose_mount_point(*wanted, *storage_, *given, CostModel::mixed);
    const auto at_home = std::ranges::find_if(choice.candidates, &Candidate::is_home);
    if (choice.chosen && at_home != choice.candidates.end())
      if (const auto there = lies_on(*home, *choice.chosen); !there || *there) choice.chosen = at_home->mount_point;
    return choice;
  }

  std::string file;  ///< empty: there is no description

 private:
  std::shared_ptr<Storage> storage_;
};

/// The command of the run, and the number of ranks if a launcher that is not part of it has started them.
void set_command(const std::vector<trace::Trace>& traces, observe::Surroundings& surroundings) {
  const ordered_json manifest = parse_json(traces.front().manifest(), 8);
  if (manifest.is_object() && manifest.contains("command") && manifest["command"].is_array())
    for (const auto& word : manifest["command"])
      if (word.is_string()) surroundings.command.push_back(word.get<std::string>());
  std::int64_t ranks = 0;
  for (const trace::Trace& each : traces)
    for (const auto& [key, process] : each.processes()) {
      if (!process.rank) continue;
      ranks = std::max(ranks, process.ranks.value_or(*process.rank + 1));
      const bool is_command = !surroundings.command.empty() && process.arguments == surroundings.command;
      if (is_command && ranks > 1) surroundings.launched = ranks;
    }
}

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json json_of(const Advice& each, const OpenLines& lines) {
  return {{"topic", observe::topic_names[static_cast<std::size_t>(each.topic)]},
          {"stream", text_or_null(each.glob)},
          {"paths", each.paths},
          {"opened_at", open_lines_of(each.paths, lines)},
          {"what", each.what},
          {"time_s", each.time_s},
          {"time_share", each.time_share},
          {"accesses", {{"count", each.behind.count}, {"command", text_or_null(each.behind.command)}}},
          {"help",
           {{"text", each.help.text},
            {"command", text_or_null(each.help.command)},
            {"caution", text_or_null(each.help.caution)}}},
          {"gain",
           {{"seconds", each.gain.seconds ? ordered_json(*each.gain.seconds) : ordered_json()},
            {"share", each.gain.seconds ? ordered_json(each.gain.share) : ordered_json()},
            {"from", !each.gain.seconds       ? ordered_json()
                     : each.gain.is_predicted ? ordered_json("cost model")
                                              : ordered_json("trace")},
            {"why", each.gain.why}}}};
}

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string gain_text(const Advice& each) {
  if (!each.gain.seconds) return fmt::format("unknown: {}", each.gain.why);
  return fmt::format("{} {}, {} of {}", each.gain.is_predicted ? "about" : "up to", about_seconds(*each.gain.seconds),
                     percent_text(each.gain.share),
                     each.topic == observe::Topic::imbalance ? "the slowest rank's I/O time" : "the I/O time");
}

/// Where the files are opened: a few of the places.
std::string places_text(const std::vector<std::string>& paths, const OpenLines& lines) {
  constexpr std::size_t max_places = 3;
  std::vector<std::string> texts;
  for (const OpenLine& each : open_lines_of(paths, lines)) texts.push_back(open_line_text(each));
  const std::size_t shown = std::min(texts.size(), max_places);
  std::string text = fmt::format("{}", fmt::join(std::span(texts).first(shown), "; "));
  if (shown < texts.size()) text += fmt::format("; and at {} more places", texts.size() - shown);
  return printable(text);
}

std::string text_of(const Advice& each, const OpenLines& lines, bool why) {
  std::string text = fmt::format("{}  {}\n", observe::topic_names[static_cast<std::size_t>(each.topic)],
                                 each.glob.empty() ? "all files" : printable(each.glob));
  const auto line = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) text += fmt::format("  {:<9} {}\n", name, value);
  };
  line("what", each.what);
  line("opened", places_text(each.paths, lines));
  line("time", fmt::format("{}, {} of the I/O time", about_seconds(each.time_s), percent_text(each.time_share)));
  line("help", each.help.text);
  line("command", each.help.command);
  line("but", each.help.caution);
  line("gain", gain_text(each));
  if (why && each.gain.seconds) line("why", each.gain.why);
  line("accesses", each.behind.command.empty() ? fmt::format("{}", each.behind.count) : each.behind.command);
  return text;
}

void show(const RunAdvice& found, const Evidence& evidence, const AdviseArguments& options, const Machine& machine,
          const Console& console) {
  OpenLines lines;
  for (const trace::Trace& each : evidence.traces) add_open_lines(each, lines, console);
  if (console.json) {
    ordered_json advice = ordered_json::array();
    for (const Advice& each : found.advice) advice.push_back(json_of(each, lines));
    console.say_json(advice_schema, {{"traces", options.directories},
                                     {"storage", text_or_null(machine.file)},
                                     {"io_s", found.io_s},
                                     {"wall_s", found.wall_s},
                                     {"advice", std::move(advice)},
                                     {"left_out", found.left_out}});
    return;
  }
  console.say(fmt::format("{} of I/O in {}", about_seconds(found.io_s), about_seconds(found.wall_s)));
  for (const Advice& each : found.advice) console.say("\n" + std::string(trimmed(text_of(each, lines, options.why))));
  const bool has_calls =
      std::ranges::any_of(evidence.traces, [](const trace::Trace& each) { return !each.parts().empty(); });
  if (found.advice.empty())
    console.say(has_calls ? "no advice: nothing costs much without need"
                          : "no advice: without calls, no costs are known");
  if (found.left_out > 0)
    console.note(fmt::format("left out: {} finding{} with less than 10 ms or {} to gain (--min-gain)", found.left_out,
                             found.left_out == 1 ? "" : "s", options.min_gain));
}

int run_advise(const AdviseArguments& options, Console& console) {
  const auto min_gain = parse_share(options.min_gain);
  if (!min_gain) return console.fail({ErrorKind::usage, fmt::format("--min-gain: {}", min_gain.error().message)});
  Ranks ranks;
  if (auto set = set_ranks(options.ranks, ranks); !set) return console.fail(set.error());
  const auto machine = Machine::described(options.storage);
  if (!machine) return console.fail(machine.error());
  Evidence evidence;
  if (auto opened = open_traces(options, evidence, console); !opened) return console.fail(opened.error());
  gather(options, ranks, evidence, console);
  observe::Surroundings surroundings{
      .traces = options.directories,
      .storage = options.storage,
      .storing = [&](const std::string& path) { return machine->storing(path); },
      .choose = [&](const std::string& path, const std::string& signature) { return machine->choose(path, signature); },
      .no_gain = machine->no_gain()};
  set_command(evidence.traces, surroundings);
  show(observe::advise(evidence.run, evidence.costs, surroundings, *min_gain), evidence, options, *machine, console);
  return yes;
}

}  // namespace

void add_advise(Verb app, Action& action) {
  const Verb verb = app.add_verb("advise", "Say what would make a traced program spend less time in its I/O");
  const auto options = std::make_shared<AdviseArguments>();
  verb.add_option("TRACE", options->directories, "directories that 'iosig trace -o' made; several are one trace")
      .type_name("DIR")
      .required();
  add_storage_option(verb, options->storage);
  verb.add_option("--min-gain", options->min_gain, "leave out what would save less of the I/O time")
      .type_name("SHARE")
      .shows_default();
  verb.add_option("--files", options->files, "only files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB");
  verb.add_option("--rank", options->ranks, "only the accesses of these ranks, e.g. 0-3,7").type_name("LIST");
  verb.add_flag("--all", options->all, "also files in /usr, /etc and the like");
  verb.add_flag("--why", options->why, "give the numbers behind each gain");
  verb.footer(
      "Changes nothing: it prints the commands that would help, and those that list the accesses.\n"
      "Example: iosig trace -o job.trace -- ./solver && iosig advise job.trace --why");
  verb.when_chosen(action, advice_schema, [options](Console& console) { return run_advise(*options, console); });
}

}  // namespace iosig::cli
