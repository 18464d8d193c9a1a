// `iosig recover`: after a crash, completes or rolls back interrupted operations, and reports which.

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/enact/recover.h"
#include "iosig/enact/reserve.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct RecoverArguments {
  std::vector<std::string> paths;
  bool dry_run = false;
};

int run_recover(const RecoverArguments& options, Console& console) {
  Result<Fd> lock = Fd{};
  if (!options.dry_run) lock = join_journal();
  if (!lock) return console.fail(lock.error());
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  const bool all = options.paths.empty() || options.paths == std::vector<std::string>{"all"};

  int status = yes;
  std::array<std::size_t, 3> counts{};
  ordered_json recovered = ordered_json::array(), refused = ordered_json::array();
  const auto show = [&](const Result<Recovery>& done) {
    if (!done) {
      status = std::max(status, console.fail(done.error()));
      refused.push_back({{"message", done.error().message}});
      return;
    }
    ++counts.at(static_cast<std::size_t>(done->outcome));
    const char* outcome = name_of(done->outcome);
    if (!console.json) {
      const bool would = options.dry_run && done->outcome != Recovery::Outcome::left;
      console.say(fmt::format("'{}': {}{} ({})", printable(done->path), would ? "would be " : "", outcome, done->why));
    }
    recovered.push_back({{"path", done->path}, {"outcome", outcome}, {"why", done->why}});
  };

  std::vector<JournalEntry> entries;
  std::vector<std::string> mount_points;
  if (all) {
    entries = journal->entries;
    mount_points = known_mount_points(*journal, console);
    for (const Unreadable& entry : journal->unreadable) show(recover(entry, mount_points, options.dry_run));
  }
  for (const std::string& path : all ? std::vector<std::string>{} : options.paths) {
    auto found = redirects_at(*journal, path);
    if (!found) {
      show(pass_on(found.error()));
      continue;
    }
    if (found->empty() && !console.json) console.say(fmt::format("'{}': nothing is redirected there", printable(path)));
    std::move(found->begin(), found->end(), std::back_inserter(entries));
  }
  SettleOptions settle;
  KnownLinks links;
  settle.dry_run = options.dry_run;
  if (!entries.empty()) settle.open_files = open_redirected_files();
  settle.links = &links;
  for (const JournalEntry& entry : entries) {
    Result<std::optional<Fd>> held = std::optional<Fd>(Fd{});
    if (!options.dry_run) held = lock_entry(entry.id, IfBusy::skip);
    if (!held)
      show(pass_on(held.error()));
    else if (!*held)
      show(Recovery{Recovery::Outcome::left, entry.path, "another iosig is settling it"});
    else if (!options.dry_run && !is_recorded(entry.id) && entry.pid != 0)
      show(Recovery{Recovery::Outcome::left, entry.path, "another iosig has settled it"});
    else
      show(recover(entry, settle));
  }
  for (const std::string& mount_point : options.dry_run ? std::vector<std::string>{} : mount_points)
    if (const auto directory = open_user_directory(mount_point, IfMissing::refuse)) release_stale(*directory);

  if (console.json) {
    console.say_json("iosig.recover/1", {{"dry_run", options.dry_run}, {"recovered", recovered}, {"refused", refused}});
    return status;
  }
  if (all) console.say(fmt::format("{} finished, {} undone, {} left", counts[0], counts[1], counts[2]));
  return status;
}

}  // namespace

void add_recover(Verb app, Action& action) {
  const Verb verb = app.add_verb("recover", "After a crash: finish or undo interrupted runs of finalize");
  const auto options = std::make_shared<RecoverArguments>();
  verb.add_option("PATH", options->paths, "paths that were redirected, or 'all' (default)").type_name("PATH");
  verb.add_flag("--dry-run", options->dry_run, "show what would be done; change nothing");
  verb.footer(
      "Data that are redirected stay redirected: 'iosig finalize' brings them home. Redirects of running programs "
      "and prepared links are left alone. Safe to repeat, and to kill.\n"
      "Exit status: 0, also when something is left (it says why), 4 the system refused.\n"
      "Example: iosig recover all");
  verb.when_chosen(action, "iosig.recover/1", [options](Console& console) { return run_recover(*options, console); });
}

}  // namespace iosig::cli
