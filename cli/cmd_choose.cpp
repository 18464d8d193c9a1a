// `iosig choose`: reports on which mount point a stream should live, and why not on others. Only --make-folder changes
// anything.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/redirect.h"
#include "iosig/format/choice_json.h"
#include "iosig/format/presets.h"
#include "iosig/format/signature_text.h"
#include "policy_options.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

struct ChooseArguments {
  std::vector<std::string> signature;
  std::string storage;
  std::string model = "mixed", home;
  PolicyOptions policy;
  bool make_directory = false, presets = false;
};

std::string table_of(const Choice& choice, const Screen& screen) {
  const bool is_of_job = choice.policy == Policy::job;
  std::vector<std::string> columns{"", "mount point", "throughput", "per operation", "why"};
  if (is_of_job) columns.insert(columns.begin() + 2, "whole job");
  Table table(columns);
  for (const Candidate& candidate : choice.candidates) {
    const bool is_chosen = choice.chosen == candidate.mount_point;
    std::vector<std::string> row{is_chosen              ? "*"
                                 : candidate.admissible ? ""
                                                        : "x",
                                 printable(candidate.mount_point) + (candidate.is_home ? " (home)" : ""),
                                 about_rate(candidate.throughput_bytes_per_s), about_seconds(candidate.operation_s),
                                 fmt::format("{}", fmt::join(candidate.reasons, "; "))};
    if (is_of_job) row.insert(row.begin() + 2, about_seconds(candidate.job.total_s()));
    table.add(row);
  }
  return table.text(screen);
}

/// Returns the full explanation of the choice for the user. `to`: stdout; or stderr if stdout must contain only the
/// directory.
std::string explanation(const Choice& choice, const Signature& signature, const std::string& file, int to) {
  std::string text = fmt::format("signature  {}\nstorage    {}\n", signature_text(signature),
                                 file.empty() ? "quick inspection, conservative defaults" : file);
  if (choice.policy == Policy::paper) text += "policy     paper: the highest throughput, also in memory\n";
  for (const std::string& assumption : choice.assumptions) text += fmt::format("assumed    {}\n", assumption);
  text += '\n' + table_of(choice, screen_of(to)) + "\n\n";
  text += choice.chosen ? fmt::format("chosen: {}", printable(*choice.chosen)) : "chosen: none is admissible";
  return text + break_even_text(choice);
}

int list_presets(Console& console) {
  Table table({"preset", "signature", "meaning"});
  auto list = nlohmann::ordered_json::array();
  for (const Preset& preset : presets()) {
    table.add({std::string(preset.name), std::string(preset.signature), std::string(preset.meaning)});
    list.push_back({{"name", preset.name}, {"signature", preset.signature}, {"meaning", preset.meaning}});
  }
  if (console.json)
    console.say_json("iosig.presets/1", {{"presets", list}});
  else
    console.say(table);
  return yes;
}

int run_choose(const ChooseArguments& options, Console& console) {
  if (options.presets) return list_presets(console);
  if (options.signature.empty())
    return console.fail(
        {ErrorKind::usage,
         "SIGNATURE is required: e.g. 'persist random', or a name that --presets lists; see 'iosig choose --help'"});
  const auto wanted = parse_signature(fmt::format("{}", fmt::join(options.signature, " ")));
  if (!wanted) return console.fail(wanted.error());
  const auto source = load_storage(options.storage, console);
  if (!source) return console.fail(source.error());
  std::optional<Place> home;
  if (!options.home.empty()) {
    auto place = home_at(options.home);
    if (!place) return console.fail(place.error());
    home = *std::move(place);
  }
  const auto asked = asked_by(options.policy, home ? Residence::home : Residence::rest);
  if (!asked) return console.fail(asked.error());
  const auto given =
      circumstances_at(home ? &*home : nullptr, *wanted, source->storage, *asked, [] { return ask_page_cache(); });
  if (!given) return console.fail(given.error());
  Choice choice = choose_mount_point(*wanted, source->storage, *given,
                                     options.model == "paper" ? CostModel::paper : CostModel::mixed);
  explain_reliability(*wanted, source->storage, choice);
  explain_break_even(*wanted, source->storage, *given, choice);
  std::string directory;
  if (options.make_directory && choice.chosen) {
    auto made = make_job_directory(*source->storage.find_mount_point(*choice.chosen), *wanted);
    if (!made) return console.fail(made.error());
    directory = *std::move(made);
  }
  if (console.json) {
    nlohmann::ordered_json document = {
        {"signature", signature_text(*wanted)}, {"storage", source->file}, {"model", options.model}};
    document["home"] = given->home ? nlohmann::ordered_json(given->home->mount_point) : nlohmann::ordered_json();
    document.update(choice_json(choice));
    if (options.make_directory)
      document["folder"] = directory.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(directory);
    console.say_json("iosig.choice/2", document);
  } else if (options.make_directory) {
    console.talk(explanation(choice, *wanted, source->file, STDERR_FILENO));
    if (!directory.empty()) console.say(directory);
  } else {
    console.say(explanation(choice, *wanted, source->file, STDOUT_FILENO));
  }
  return choice.chosen ? yes : no;
}

}  // namespace

void add_choose(Verb app, Action& action) {
  const Verb verb = app.add_verb("choose", "Choose the mount point for a stream, and explain the choice");
  const auto options = std::make_shared<ChooseArguments>();
  verb.add_option("SIGNATURE", options->signature, "the stream's signature, e.g. 'persist random size-per-IO(64KB)'");
  add_storage_option(verb, options->storage);
  verb.add_option("--model", options->model, "mixed (default), or paper: Eq. 3 as printed, every operation a write")
      .check(one_of({"mixed", "paper"}))
      .type_name("NAME");
  add_policy_options(verb, options->policy);
  verb.add_option("--home", options->home, "the data must be at this path after the job: charge what brings them there")
      .type_name("PATH");
  verb.add_flag("--make-folder", options->make_directory,
                "create a private directory on the chosen mount point and print only its path");
  verb.add_flag("--presets", options->presets, "list the signatures that are known by name").excludes("SIGNATURE");
  verb.footer(
      "Exit status: 0 a mount point is chosen, 1 none is admissible.\n"
      "Example: iosig choose 'persist random size-per-IO(64KB) totalsize(1GB)'\n"
      "         sort -T \"$(iosig choose --make-folder 'temp totalsize(8GB)')\" big.txt");
  verb.when_chosen(action, "iosig.choice/2", [options](Console& console) { return run_choose(*options, console); });
}

}  // namespace iosig::cli
