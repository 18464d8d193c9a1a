// `iosig gc`: removes what dead jobs left on the mount points, and lists what else of this user's lies there.

#include <algorithm>
#include <memory>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/collect.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string older_than = "1d";
  bool dry_run = false;
};

int run_gc(const Options& options, Console& console) {
  const auto older_than_s = parse_seconds(options.older_than);
  if (!older_than_s) return console.fail({ErrorKind::usage, "--older-than: " + older_than_s.error().message});
  Result<Fd> lock = Fd{};
  if (!options.dry_run) lock = lock_journal();
  if (!lock) return console.fail(lock.error());
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  for (const Unreadable& entry : journal->unreadable) console.note(entry.error.message);

  const auto leftovers = collect(*journal, known_mount_points(*journal, console),
                                 {*older_than_s, options.dry_run, open_redirected_files()});
  int status = yes;
  ordered_json removed = ordered_json::array(), kept = ordered_json::array(), refused = ordered_json::array();
  for (const auto& leftover : leftovers) {
    if (!leftover) {
      status = std::max(status, console.fail(leftover.error()));
      refused.push_back({{"message", leftover.error().message}});
      continue;
    }
    if (!console.json)
      console.say(fmt::format("'{}': {}{} ({}, {})", printable(leftover->path),
                              leftover->removed && options.dry_run ? "would be " : "",
                              leftover->removed ? "removed" : "kept",
                              about_bytes(static_cast<double>(leftover->data_bytes)), leftover->why));
    (leftover->removed ? removed : kept)
        .push_back({{"path", leftover->path}, {"data_bytes", leftover->data_bytes}, {"why", leftover->why}});
  }
  if (console.json)
    console.say_json("iosig.gc/1",
                     {{"dry_run", options.dry_run}, {"removed", removed}, {"kept", kept}, {"refused", refused}});
  else if (leftovers.empty())
    console.say("nothing was left behind");
  return status;
}

}  // namespace

void add_gc(CLI::App& app, Action& action) {
  auto* verb = app.add_subcommand("gc", "Remove what dead jobs left on the mount points");
  const auto options = std::make_shared<Options>();
  verb->add_option("--older-than", options->older_than, "only what rested for so long (default 1d); 0s: everything")
      ->type_name("TIME");
  verb->add_flag("--dry-run", options->dry_run, "say what would be done, change nothing");
  verb->footer(
      "Removed: temporary data and folders of jobs of which no process lives on this machine. Kept and listed: "
      "persistent\n"
      "data, prepared links, files that no journal entry knows. This cannot be undone: look with --dry-run first.\n"
      "Exit status: 0; 1 something could not be removed; 4 the system refused.\n"
      "Example: iosig gc --dry-run");
  when_chosen(verb, action, "iosig.gc/1", [options](Console& console) { return run_gc(*options, console); });
}

}  // namespace iosig::cli
