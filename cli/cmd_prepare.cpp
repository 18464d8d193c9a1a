// `iosig prepare`: before a run, makes links at the paths where a program will create files. The files are then created
// on the best storage. `iosig finalize` settles them after the run; before the run it removes the links again.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "background.h"
#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/agreement.h"
#include "iosig/enact/coming_home.h"
#include "iosig/enact/drain_request.h"
#include "iosig/enact/link_check.h"
#include "iosig/enact/redirect.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/survey.h"
#include "iosig/format/choice_json.h"
#include "iosig/format/signature_text.h"
#include "policy_options.h"
#include "rules_source.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct PrepareArguments {
  std::vector<std::string> words;  ///< PATH SIGNATURE..., or with --rules PATH...
  std::string rules, storage;
  PolicyOptions policy;
  bool dry_run = false, literal = false, drain = false;
};

struct Wanted {
  std::string path;
  Signature signature;
  bool drain = false;
};

/// The result for one path: a line for the user, and a JSON object.
struct Prepared {
  std::string text;
  ordered_json json;
};

/// Space that is already spoken for: by the streams in the journal, and by the paths prepared before this one.
struct SoFar {
  ComingHome coming;
  bool has_reserved = false;
};

/// Returns the destination of IOSIG's link at `place`, or nothing if the path is free. Refuses anything else.
Result<std::optional<std::string>> standing_link(const Place& place) {
  struct stat status {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISLNK(status.st_mode))
    return fail(ErrorKind::infeasible,
                "'{}' exists already, and only new files are redirected; move it away, or give the path of the file "
                "that the program will create",
                printable(place.path()));
  // The link contains enough information. Reading the whole journal for each path would take quadratic time.
  const auto known = redirects_at(Journal{}, place.path());
  if (!known) return pass_on(known.error());
  if (known->empty()) return std::nullopt;  // removed meanwhile
  const std::string& destination = known->front().destination;
  if (::access(destination.substr(0, destination.rfind('/')).c_str(), F_OK) == 0) return destination;
  // The destination's directory is missing: creating the file through the link would fail. But if the journal has the
  // link, it belongs to another node and stays.
  const auto journal = read_journal();
  if (journal &&
      std::ranges::none_of(journal->entries, [&](const auto& each) { return each.destination == destination; }))
    return fail(ErrorKind::infeasible,
                "'{0}' is a link to '{1}', whose directory is not there: its data were settled by another link or "
                "deleted, or nothing is mounted there; rm '{0}', then prepare it again",
                printable(place.path()), printable(destination));
  return destination;
}

std::string explanation(const Choice& choice) {
  std::string text;
  if (choice.policy == Policy::paper) text += "\n  by the paper's policy: the highest throughput, also in memory";
  const auto summary = [](const Candidate& candidate, Policy policy) {
    const std::string rate = about_rate(candidate.throughput_bytes_per_s);
    return policy == Policy::paper
               ? rate
               : fmt::format("{} for the whole job, {}", about_seconds(candidate.job.total_s()), rate);
  };
  for (const Candidate& candidate : choice.candidates)
    text += fmt::format(
        "\n  {} {}: {}{}", choice.chosen == candidate.mount_point ? '*' : ' ', printable(candidate.mount_point),
        candidate.admissible ? summary(candidate, choice.policy) + ", " : "", fmt::join(candidate.reasons, "; "));
  return text + break_even_text(choice, "\n    ");
}

/// Prepares one path. Updates the free and reserved space in `storage`, and `so_far`.
Result<Prepared> prepare(const std::string& path, const Signature& declared, Storage& storage, const Asked& asked,
                         SoFar& so_far, bool dry_run, int tries_left = 3) {
  const auto place = locate(AT_FDCWD, path);
  if (!place) return pass_on(place.error());
  const auto [signature, why_agreed] = agree(declared, *place, storage);
  const std::string shown = printable(place->path());
  ordered_json json = {{"path", place->path()}, {"signature", signature_text(signature)}};
  const auto standing = standing_link(*place);
  if (!standing) return pass_on(standing.error());
  if (*standing) {
    json.update({{"action", "already"}, {"destination", **standing}});
    return Prepared{fmt::format("{}: leads to {} already", shown, printable(**standing)), json};
  }
  if (signature.total_bytes || so_far.has_reserved) ask_room(storage);  // also for the previous paths
  auto given = circumstances_at(&*place, signature, storage, asked, [] { return ask_page_cache(); });
  if (!given) return pass_on(given.error());
  given->coming_home_bytes = so_far.coming.bytes_to(place->device);
  Choice choice = choose_mount_point(signature, storage, *given);
  explain_break_even(signature, storage, *given, choice);
  if (!why_agreed.empty()) choice.assumptions.push_back(why_agreed);
  std::string explained = (why_agreed.empty() ? "" : "\n  assumed " + why_agreed) + explanation(choice);
  json["choice"] = choice_json(choice);
  if (const std::string warning = room_warning(signature, storage, *given, choice); !warning.empty()) {
    explained += "\n  warning: " + warning;
    json["warning"] = warning;
  }
  if (!choice.chosen)
    return fail(ErrorKind::infeasible, "'{}': no mount point admits '{}'; the file stays where it is:{}", shown,
                signature_text(signature), explained);
  json["mount_point"] = *choice.chosen;
  const auto there = lies_on(*place, *choice.chosen);
  if (!there) return pass_on(there.error());
  if (*there) {
    json["action"] = "stays";
    return Prepared{fmt::format("{}: stays: elsewhere the job would not end enough sooner{}", shown, explained), json};
  }
  if (const auto possible = links_lead_on(*place, storage); !possible) return pass_on(possible.error());
  json["action"] = "linked";
  const MountPoint& mount = *storage.find_mount_point(*choice.chosen);
  const Signature recorded = with_residence(signature, mount, *given);
  if (dry_run) {
    so_far.coming.add(place->device, recorded, {});
    return Prepared{fmt::format("{}: would lead to {}{}", shown, printable(*choice.chosen), explained), json};
  }
  const auto entry = make_link(*place, mount, recorded, RedirectedBy::prepare);
  const bool somebody_was_first = entry ? !*entry : entry.error().kind == ErrorKind::infeasible;
  if (somebody_was_first && tries_left > 0)
    return prepare(path, declared, storage, asked, so_far, dry_run, tries_left - 1);
  if (!entry) return pass_on(entry.error());
  if (!*entry) return fail(ErrorKind::infeasible, "'{}': path keeps changing; giving up", shown);
  json["destination"] = (*entry)->destination;
  so_far.coming.add(place->device, recorded, {});
  so_far.has_reserved = so_far.has_reserved || recorded.total_bytes;
  return Prepared{fmt::format("{}: leads to {}{}", shown, printable((*entry)->destination), explained), json};
}

/// Whether the path is a glob that the shell has not expanded because no file matches it. A link of that name is
/// useless.
bool is_pattern(std::string_view path) {
  const std::size_t bracket = path.find('[');
  return path.find_first_of("*?") != std::string_view::npos ||
         (bracket != std::string_view::npos && path.find(']', bracket) != std::string_view::npos);
}

Result<void> check_pattern(const std::string& path, const PrepareArguments& options) {
  if (is_pattern(path) && !options.literal)
    return fail(
        ErrorKind::usage,
        "'{}' is a pattern, and no file that it matches exists yet; give the path of each file that the program "
        "will create, e.g. step{{1..9}}.out in bash, or --literal if the file is really called so",
        printable(path));
  return {};
}

/// Parses the signature in the words after the path. `prepare a b random` gets a message about --rules, because the
/// user probably means two paths.
Result<Signature> signature_in(const std::vector<std::string>& words) {
  auto signature = parse_signature(fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
  if (signature || words.size() < 3 || words[1].find_first_of("(\"") != std::string::npos) return signature;
  const ParsedSignature alone = parse_sig(words[1]);
  if (alone.ok() || std::ranges::any_of(alone.diagnostics, [](const auto& each) { return !each.suggestion.empty(); }))
    return signature;
  return fail(ErrorKind::bad_input, "'{}' is not a word of a signature; several paths need --rules FILE",
              printable(words[1]));
}

/// Returns the paths to prepare, each with its signature. Rules match absolute paths, with symbolic links resolved or
/// as given. Passes refused paths to `refuse` and continues with the others.
Result<std::vector<Wanted>> wanted_streams(const PrepareArguments& options, const Console& console,
                                           ordered_json& unmatched,
                                           const std::function<void(const std::string&, const Error&)>& refuse) {
  std::vector<Wanted> wanted;
  if (options.rules.empty()) {
    if (auto fine = check_pattern(options.words.front(), options); !fine) return pass_on(fine.error());
    auto signature = signature_in(options.words);
    if (!signature) return pass_on(signature.error());
    wanted.push_back({options.words.front(), *std::move(signature), options.drain});
    return wanted;
  }
  const auto rules = read_rules(options.rules, console);
  if (!rules) return pass_on(rules.error());
  for (const std::string& path : options.words) {
    if (auto fine = check_pattern(path, options); !fine) {
      refuse(path, fine.error());
      continue;
    }
    const auto place = locate(AT_FDCWD, path);
    if (!place && place.error().kind == ErrorKind::usage) {  // a directory
      refuse(path, place.error());
      continue;
    }
    const Rule* rule = match_rule(*rules, place ? place->path() : path);
    if (rule == nullptr) rule = match_rule(*rules, std::filesystem::absolute(path).lexically_normal());
    if (rule != nullptr) {
      wanted.push_back({path, rule->signature, options.drain || rule->drain});
      continue;
    }
    console.note(fmt::format("no rule matches '{}'; it stays where it is", printable(path)));
    unmatched.push_back({{"path", path}, {"action", "stays"}, {"message", "no rule matches"}});
  }
  return wanted;
}

/// Starts a drain of the links at these paths, except of data that may rest where they are.
Result<void> drain_links_at(const std::vector<std::string>& paths, Console& console) {
  const auto journal = read_journal();
  if (!journal) return pass_on(journal.error());
  std::vector<JournalEntry> entries;
  for (const JournalEntry& entry : journal->entries)
    if (entry.signature.residence != Residence::rest && std::ranges::find(paths, entry.path) != paths.end())
      entries.push_back(entry);
  if (entries.empty()) return {};
  for (const JournalEntry& entry : entries)
    if (auto requested = request_drain(entry); !requested) return requested;
  std::vector<std::string> words = {"finalize", "--background", "--foreground", "--"};
  for (const JournalEntry& entry : entries) words.push_back(entry.path);
  const auto started = start_drain(entries, {.give_up_after_s = drain_timeout_s}, words);
  if (!started) return pass_on(started.error());
  if (!started->refused.empty()) return pass_on(started->refused.front());
  if (!started->no_service.empty()) console.note(started->no_service + "; a process drains instead");
  if (!console.json && (started->pid != 0 || !started->unit.empty()))
    console.say(fmt::format("{} settles {} when the program has closed {}", text_of(*started),
                            started->taken.size() == 1 ? "it" : "them", started->taken.size() == 1 ? "it" : "each"));
  return {};
}

int run_prepare(const PrepareArguments& options, Console& console) {
  if (options.words.size() < (options.rules.empty() ? 2 : 1))
    return console.fail(
        {ErrorKind::usage,
         "prepare needs PATH and SIGNATURE, e.g. iosig prepare out.txt 'persist sequential', or --rules "
         "FILE PATH..."});
  ordered_json redirects = ordered_json::array();
  int status = yes;
  const auto refuse = [&](const std::string& path, const Error& error) {
    status = std::max(status, console.fail(error));
    redirects.push_back({{"path", path}, {"action", "refused"}, {"message", error.message}});
  };
  const auto wanted = wanted_streams(options, console, redirects, refuse);
  if (!wanted) return console.fail(wanted.error());
  const auto asked = asked_by(options.policy, Residence::home);
  if (!asked) return console.fail(asked.error());
  auto source = load_storage(options.storage, console);
  if (!source) return console.fail(source.error());
  std::vector<std::string> to_drain;
  SoFar so_far;
  if (std::ranges::any_of(*wanted, [](const Wanted& each) { return each.signature.total_bytes.has_value(); }))
    if (const auto journal = read_journal()) so_far.coming.add(*journal);
  for (const auto& [path, signature, drain] : *wanted) {
    if (signature.container_targets)
      console.note(
          fmt::format("'{}': only 'iosig run' makes containers; it is placed as one ordinary file", printable(path)));
    auto prepared = prepare(path, signature, source->storage, *asked, so_far, options.dry_run);
    if (!prepared) {
      refuse(path, prepared.error());
      continue;
    }
    if (!console.json) console.say(prepared->text);
    if (drain && prepared->json.contains("destination")) to_drain.push_back(prepared->json["path"]);
    redirects.push_back(std::move(prepared->json));
  }
  if (!options.dry_run && !to_drain.empty())
    if (auto started = drain_links_at(to_drain, console); !started)
      status = std::max(status, console.fail(started.error()));
  if (console.json) console.say_json("iosig.prepare/1", {{"dry_run", options.dry_run}, {"redirects", redirects}});
  return status;
}

}  // namespace

void add_prepare(Verb app, Action& action) {
  const Verb verb = app.add_verb("prepare", "Before a run: redirect new files to the best mount point");
  const auto options = std::make_shared<PrepareArguments>();
  verb.add_option("PATH", options->words, "the file that the program will create, and its signature")
      .type_name("PATH SIGNATURE...")
      .option_text("SIGNATURE...");
  verb.add_option("--rules", options->rules, "take the signatures from this file; all arguments are paths")
      .type_name("FILE");
  verb.add_flag("--drain", options->drain, "bring each file home in the background when the program has closed it");
  verb.add_flag("--literal", options->literal, "take * ? [ in a path literally");
  add_storage_option(verb, options->storage);
  add_policy_options(verb, options->policy);
  verb.add_flag("--dry-run", options->dry_run, "show what would be done; change nothing");
  verb.footer(
      "Undo with 'iosig finalize PATH' before the run. Safe to repeat.\n"
      "Exit status: 0 linked or best where it is, 1 nothing is admissible or the path exists.\n"
      "Example: iosig prepare sorted.txt 'persist sequential totalsize(2GB)'\n"
      "         sort -o sorted.txt big.txt\n"
      "         iosig finalize sorted.txt");
  verb.when_chosen(action, "iosig.prepare/1", [options](Console& console) { return run_prepare(*options, console); });
}

}  // namespace iosig::cli
