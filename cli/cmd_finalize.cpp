// `iosig finalize`: after a run, moves redirected data to the requested paths and **deletes temporary data**.

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/settle.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct FinalizeArguments {
  std::vector<std::string> paths;
  bool all = false, home = false;
  std::string verify = "copy";
  SettleOptions settle;
};

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds quiet_wait{1000}, poll_interval{20};  ///< wait for another run before a message
constexpr std::uint64_t long_copy_bytes = 64 * MiB;                       ///< larger copies show progress

/// The entries to settle, and the paths at which nothing is redirected.
struct Work {
  std::vector<JournalEntry> entries;
  std::vector<std::string> nothing_at;
  std::vector<Error> refused;
};

Work gather(const FinalizeArguments& options, const Journal& journal) {
  Work work;
  if (options.all) {
    work.entries = journal.entries;
    for (const Unreadable& entry : journal.unreadable) work.refused.push_back(entry.error);
    return work;
  }
  for (const std::string& path : options.paths) {
    auto found = redirects_at(journal, path);
    if (!found)
      work.refused.push_back(std::move(found.error()));
    else if (found->empty())
      work.nothing_at.push_back(path);
    else
      for (JournalEntry& entry : *found)
        if (std::find(work.entries.begin(), work.entries.end(), entry) == work.entries.end())
          work.entries.push_back(std::move(entry));
  }
  return work;
}

std::string one_or_count(const std::string& path, std::size_t count) {
  return count == 1 ? fmt::format("'{}'", printable(path)) : fmt::format("{} redirects", count);
}

int run_finalize(FinalizeArguments options, Console& console) {
  if (options.all != options.paths.empty())
    return console.fail({ErrorKind::usage, "finalize needs either paths or --all"});
  options.settle.leave_resting = options.all && !options.home;
  options.settle.copy.verify = options.verify == "full"   ? Verify::full
                          : options.verify == "none" ? Verify::none
                                                     : Verify::copy;
  Result<Fd> lock = Fd{};
  if (!options.settle.dry_run) lock = join_journal();
  if (!lock) return console.fail(lock.error());
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  if (!options.all)
    for (const Unreadable& entry : journal->unreadable) console.note(entry.error.message);
  const Work work = gather(options, *journal);

  int status = yes;
  ordered_json settled = ordered_json::array(), refused = ordered_json::array(), elsewhere = ordered_json::array();
  const auto refuse = [&](const Error& error) {
    console.end_progress();
    refused.push_back({{"message", error.message}});
    status = std::max(status, console.fail(error));
  };
  for (const Error& error : work.refused) refuse(error);
  options.settle.open_files = open_redirected_files();
  KnownLinks links;
  options.settle.links = &links;
  // Another run may be settling the same entries: these are tried again after all others.
  std::vector<JournalEntry> busy;
  std::set<std::string> recorded;  ///< ids that were in the journal at some time
  const auto settle_one = [&](const JournalEntry& entry, IfBusy if_busy) {
    Result<std::optional<Fd>> held = std::optional<Fd>(Fd{});
    if (is_recorded(entry.id)) recorded.insert(entry.id);
    if (!options.settle.dry_run) held = lock_entry(entry.id, if_busy);
    if (!held) return refuse(held.error());
    if (!*held) return busy.push_back(entry);
    if (!options.settle.dry_run && !is_recorded(entry.id) && (recorded.contains(entry.id) || entry.pid != 0)) {
      elsewhere.push_back(entry.path);
      return;
    }
    options.settle.copy.progress = [&](const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes) {
      if (total_bytes < long_copy_bytes) return;
      console.progress({fmt::format("{} {}", doing, printable(entry.path)), static_cast<double>(done_bytes),
                        static_cast<double>(total_bytes)});
    };
    const auto done = settle(entry, options.settle);
    console.end_progress();
    if (!done) return refuse(done.error());
    if (!console.json) console.say(done->text);
    settled.push_back({{"path", done->path},
                       {"destination", entry.destination},
                       {"action", name_of(done->action)},
                       {"data_bytes", done->data_bytes},
                       {"companions", done->companions},
                       {"dangling_links", done->dangling_links},
                       {"message", done->text}});
  };
  for (const JournalEntry& entry : work.entries) settle_one(entry, IfBusy::skip);
  const auto try_busy = [&](IfBusy if_busy) {
    for (const JournalEntry& entry : std::exchange(busy, {})) settle_one(entry, if_busy);
  };
  for (const auto begin = steady_clock::now(); !busy.empty() && steady_clock::now() - begin < quiet_wait;) {
    std::this_thread::sleep_for(poll_interval);
    try_busy(IfBusy::skip);
  }
  if (!busy.empty())
    console.note(fmt::format("waiting for another run that settles {}", one_or_count(busy.front().path, busy.size())));
  try_busy(IfBusy::wait);
  if (console.json) {
    console.say_json("iosig.finalize/1", {{"dry_run", options.settle.dry_run},
                                          {"settled", settled},
                                          {"settled_by_another_run", elsewhere},
                                          {"refused", refused},
                                          {"nothing_at", work.nothing_at}});
    return status;
  }
  for (const std::string& path : work.nothing_at)
    console.say(fmt::format("'{}': nothing is redirected there", printable(path)));
  if (!elsewhere.empty())
    console.say(fmt::format("{} {} settled by another run",
                            one_or_count(elsewhere.front().get<std::string>(), elsewhere.size()),
                            elsewhere.size() == 1 ? "was" : "were"));
  if (options.all && work.entries.empty() && work.refused.empty()) console.say("nothing is redirected");
  return status;
}

}  // namespace

void add_finalize(Verb app, Action& action) {
  const Verb verb = app.add_verb("finalize", "After a run: bring data home, delete temporary data");
  const auto options = std::make_shared<FinalizeArguments>();
  verb.add_option("PATH", options->paths, "paths that were redirected (or directories of --make-folder)")
      .type_name("PATH");
  verb.add_flag("--all", options->all, "everything in the journal, except data that may rest where they are");
  verb.add_flag("--home", options->home, "with --all: bring resting data home too");
  verb.add_flag("--keep-temp", options->settle.keep_temp, "bring temporary data home too");
  verb.add_flag("--drop-orphans", options->settle.drop_orphans,
                "delete data to which no link in their directory leads, and forget data that cannot be reached");
  verb.add_flag("--force", options->settle.force, "settle even while a process has the data open");
  verb.add_option("--verify", options->verify,
                  "compare copies: 'copy' through the page cache while copying (the default), 'full' from the device")
      .check(one_of({"copy", "full", "none"}));
  verb.add_flag("--dry-run", options->settle.dry_run, "show what would be done; change nothing");
  verb.footer(
      "Persistent data are copied beside the link, compared, and put in its place in one rename; killed or refused at "
      "any point, they stay reachable; a second run undoes what that run left, and starts again. Safe to repeat.\n"
      "Exit status: 0 all settled, 1 something could not be (it says why, nothing is lost).\n"
      "Example: iosig finalize --all");
  verb.when_chosen(action, "iosig.finalize/1", [options](Console& console) { return run_finalize(*options, console); });
}

}  // namespace iosig::cli
