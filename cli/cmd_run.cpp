// `iosig run`: runs an unmodified program with libiosig-preload, which intercepts its calls on files.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/format/container_globs.h"
#include "iosig/prefetch/declared_predictors.h"
#include "prefetch_options.h"
#include "program.h"
#include "rules_source.h"

namespace iosig::cli {
namespace {

struct RunArguments {
  std::vector<std::string> containers, command;
  std::string rules;
  PrefetchOptions prefetch;
  bool dry_run = false;
};

/// Notes a file of reads that cannot be used now. The program may still make it.
template <class Note>
void note_unusable_reads(const DeclaredReads& declared, const Note& note) {
  const auto content = prefetch::read_declared(declared);
  if (content) return;
  note(content.error().message + (content.error().kind == ErrorKind::system
                                      ? "; it is looked for again when a file of this rule is read"
                                      : "; prefetching without it"));
}

/// Notes rules without effect. `run` makes containers and prefetches, but redirects nothing: a rule without a word for
/// that only exempts its files from later rules and from the globs.
void note_rules_without_effect(const Rules& rules, const RunArguments& options, const Console& console) {
  const bool prefetches = is_on(options.prefetch);
  const auto has_effect = [&](const Rule& rule) {
    return rule.signature.container_targets.has_value() || (prefetches && rule.signature.reads);
  };
  for (auto rule = rules.rules.begin(); rule != rules.rules.end(); ++rule) {
    const auto note = [&](std::string_view text) {
      console.note(fmt::format("{}:{}: {}", printable(options.rules), rule->line, text));
    };
    if (rule->signature.reads && !prefetches)
      note("how its files will be read is used with --prefetch only");
    else if (rule->signature.reads)
      note_unusable_reads(*rule->signature.reads, note);
    else if (!has_effect(*rule) && options.containers.empty() && std::none_of(rule, rules.rules.end(), has_effect))
      note(
          "this rule does nothing here: its signature has no `container`, and 'iosig run' leaves such files where they "
          "are; 'iosig prepare --rules' redirects them");
  }
}

/// Returns the glob, which starts at the working directory, as an absolute one. That directory may have any name, and
/// matches itself alone.
std::string absolute_glob(const std::filesystem::path& glob) {
  if (glob.is_absolute()) return glob.lexically_normal().string();
  const std::filesystem::path here(escaped_glob(std::filesystem::current_path().string()));
  return (here / glob).lexically_normal().string();
}

/// Returns the environment variables to set for the program.
Result<std::vector<Setting>> settings_for(const RunArguments& options, const Console& console) {
  auto preloaded = preload_setting();
  if (!preloaded) return pass_on(preloaded.error());
  std::vector<Setting> settings{std::move(*preloaded), program_setting()};
  if (!options.containers.empty()) {
    std::string globs;
    for (const std::string& glob : options.containers) {
      if (glob.empty() || glob.find(':') != std::string::npos)
        return fail(ErrorKind::usage, "--container '{}': expected a glob without colons", printable(glob));
      if (glob.ends_with('/'))
        return fail(ErrorKind::usage, "--container '{0}' matches no file: it names a directory; expected e.g. '{0}*'",
                    printable(glob));
      const bool is_of_names = glob.find('/') == std::string::npos;
      globs += (globs.empty() ? "" : ":") + (is_of_names ? glob : absolute_glob(glob));
    }
    settings.push_back({"IOSIG_CONTAINERS", std::move(globs)});
  }
  if (!options.rules.empty()) {
    const auto rules = read_rules(options.rules, console);
    if (!rules) return pass_on(rules.error());
    note_rules_without_effect(*rules, options, console);
    settings.push_back({"IOSIG_RULES", std::filesystem::absolute(options.rules).lexically_normal().string()});
  }
  settings.push_back(sanitizer_setting());
  std::ranges::move(settings_of_running(), std::back_inserter(settings));
  if (auto added = add_prefetch_settings(options.prefetch, settings, console); !added) return pass_on(added.error());
  return settings;
}

int run_command(const RunArguments& options, Console& console) {
  if (options.command.empty())
    return console.fail(
        {ErrorKind::usage, "expected a command, e.g. iosig run --container '*.dat' -- ./solver input.txt"});
  const auto settings = settings_for(options, console);
  if (!settings) return console.fail(settings.error());
  return become_program(options.command, *settings, options.dry_run, console);
}

}  // namespace

void add_run(Verb app, Action& action) {
  const Verb verb = app.add_verb("run", "Run an unmodified program whose files become containers, or are prefetched");
  const auto options = std::make_shared<RunArguments>();
  verb.add_option("COMMAND", options->command, "after --: a program and its arguments");
  verb.add_option("--container", options->containers,
                  "new files whose name (or path, if GLOB has a slash) matches become containers")
      .type_name("GLOB")
      .repeatable();
  verb.add_option(
          "--rules", options->rules,
          "make containers of files whose rule says `container`; with --prefetch, expect the reads that a rule's "
          "`pattern(FILE)` or `order(FILE)` says")
      .type_name("FILE");
  add_prefetch_options(verb, options->prefetch);
  verb.add_flag("--dry-run", options->dry_run, "print the environment and the command; run nothing");
  verb.footer(
      "The command replaces the iosig process.\n"
      "Exit status: the program's; 126 it cannot be executed, 127 it is not found; 2, 3, 4 iosig itself failed.\n"
      "Example: iosig run --container '*.dat' -- ./solver input.txt\n"
      "         mpirun -n 4 iosig run --rules rules.toml -- ./solver\n"
      "         iosig run --prefetch --prefetch-report - -- ./viewer field.nc");
  verb.when_chosen(action, "", [options](Console& console) { return run_command(*options, console); });
}

}  // namespace iosig::cli
