// `iosig finalize`: after a run, moves redirected data to the requested paths and **deletes temporary data**.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "background.h"
#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/drain.h"
#include "iosig/enact/job.h"
#include "iosig/enact/settle.h"
#include "settling.h"
#include "user_service.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct FinalizeArguments {
  std::vector<std::string> paths;
  bool all = false, home = false;
  std::string verify = "copy";
  std::string job, timeout, max_rate;
  bool wait = false, background = false, foreground = false;
  std::uint32_t jobs = 0;
  double timeout_s = 0, max_bytes_per_s = 0;  ///< 0: no limit
  SettleOptions settle;
};

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds first_job_poll{50}, max_job_poll{2000};

/// The entries to settle, and the paths at which nothing is redirected.
struct Work {
  std::vector<JournalEntry> entries;
  std::vector<std::string> nothing_at;
  std::vector<Error> refused;
};

std::vector<JournalEntry> entries_of_job(const Journal& journal, std::string_view job) {
  std::vector<JournalEntry> entries;
  std::ranges::copy_if(journal.entries, std::back_inserter(entries),
                       [&](const JournalEntry& entry) { return is_of_job(entry, job); });
  return entries;
}

/// Adds an entry that was found at a path. Several paths may be links to the same data, which can only come home to one
/// of them: to the one in the journal, else to the first.
void add(JournalEntry entry, const Journal& journal, Work& work, const Console& console) {
  const auto known = std::ranges::find(work.entries, entry.id, &JournalEntry::id);
  if (known == work.entries.end()) {
    work.entries.push_back(std::move(entry));
    return;
  }
  if (known->path == entry.path) return;
  if (std::ranges::any_of(journal.entries,
                          [&](const JournalEntry& each) { return each.id == entry.id && each.path == entry.path; }))
    std::swap(*known, entry);
  console.note(fmt::format("'{}' leads to the data of '{}', too, and they are settled there", printable(entry.path),
                           printable(known->path)));
}

Work gather(const FinalizeArguments& options, const Journal& journal, const Console& console) {
  Work work;
  if (!options.job.empty()) {
    work.entries = entries_of_job(journal, options.job);
    return work;
  }
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
      for (JournalEntry& entry : *found) add(std::move(entry), journal, work, console);
  }
  return work;
}

/// Checks the options against each other and parses their values.
Result<void> complete(FinalizeArguments& options) {
  const int ways = (options.all ? 1 : 0) + (options.paths.empty() ? 0 : 1) + (options.job.empty() ? 0 : 1);
  if (ways != 1) return fail(ErrorKind::usage, "finalize needs either paths, --all or --job ID");
  if (options.wait && options.job.empty()) return fail(ErrorKind::usage, "--wait needs --job ID");
  if (!options.timeout.empty() && !options.wait && !options.background)
    return fail(ErrorKind::usage, "--timeout needs --wait or --background");
  const bool is_foreground_only = options.settle.dry_run || options.settle.force || options.settle.drop_orphans;
  if (options.foreground && !options.background) return fail(ErrorKind::usage, "--foreground needs --background");
  if (options.background && is_foreground_only)
    return fail(ErrorKind::usage, "--background excludes --dry-run, --force and --drop-orphans");
  options.settle.leave_resting = options.paths.empty() && !options.home;
  options.settle.copy.verify = options.verify == "full"   ? Verify::full
                               : options.verify == "none" ? Verify::none
                                                          : Verify::copy;
  options.settle.copy.in_two_threads = true;
  if (options.background) options.timeout_s = drain_timeout_s;
  if (!options.timeout.empty()) {
    const auto timeout_s = parse_seconds(options.timeout);
    if (!timeout_s) return fail(ErrorKind::usage, "--timeout: {}", timeout_s.error().message);
    options.timeout_s = *timeout_s;
  }
  if (!options.max_rate.empty()) {
    const auto rate = parse_bytes_per_s(options.max_rate);
    if (!rate) return fail(ErrorKind::usage, "--max-rate: {}", rate.error().message);
    options.max_bytes_per_s = *rate;
  }
  return {};
}

/// Returns once the job has ended. Data of a job that may still run stay where they are.
Result<void> wait_for_job(const FinalizeArguments& options, Console& console) {
  const auto begin = steady_clock::now();
  for (auto pause = first_job_poll;; pause = std::min(2 * pause, max_job_poll)) {
    const auto journal = read_journal();  // it may redirect more while it runs
    if (!journal) return pass_on(journal.error());
    const auto entries = entries_of_job(*journal, options.job);
    const std::string job = printable(options.job);
    if (options.wait && std::ranges::any_of(entries, is_in_job))
      return fail(ErrorKind::usage,
                  "this command is itself part of job '{}' and would wait for its own end; use --background instead of "
                  "--wait",
                  job);
    const JobState state = state_of_job(entries, options.job);
    if (state.life == Life::dead || options.settle.force) return {};
    if (state.life == Life::unknown)
      return fail(ErrorKind::infeasible,
                  "it cannot be told whether job '{}' has ended: {}; nothing was changed; run finalize there, or add "
                  "--force if the job has ended",
                  job, state.why);
    if (!options.wait)
      return fail(ErrorKind::infeasible, "job '{}' still runs ({}); nothing was changed; --wait waits for its end", job,
                  state.why);
    const double waited_s = std::chrono::duration<double>(steady_clock::now() - begin).count();
    if (!options.timeout.empty() && waited_s >= options.timeout_s)
      return fail(ErrorKind::infeasible, "job '{}' still runs after {} ({}); nothing was changed", job,
                  about_seconds(waited_s), state.why);
    console.progress(fmt::format("waiting for job '{}': {}, {} so far", job, state.why, about_seconds(waited_s)));
    std::this_thread::sleep_for(pause);
  }
}

/// Returns the words with which a service does what this command was asked to. Its working directory is another.
std::vector<std::string> words_of_service(const FinalizeArguments& options) {
  std::vector<std::string> words = {"finalize", "--background", "--foreground", "--verify=" + options.verify};
  const auto flag = [&](bool is_set, const char* word) {
    if (is_set) words.emplace_back(word);
  };
  flag(options.all, "--all");
  flag(options.home, "--home");
  flag(options.wait, "--wait");
  flag(options.settle.keep_temp, "--keep-temp");
  if (!options.job.empty()) words.push_back("--job=" + options.job);
  if (!options.timeout.empty()) words.push_back("--timeout=" + options.timeout);
  if (!options.max_rate.empty()) words.push_back("--max-rate=" + options.max_rate);
  if (!options.paths.empty()) words.emplace_back("--");
  for (const std::string& path : options.paths) words.push_back(std::filesystem::absolute(path).string());
  return words;
}

/// Starts a drain of the entries, or is one.
int run_in_background(const FinalizeArguments& options, const Work& work, Console& console) {
  int status = yes;
  ordered_json taken = ordered_json::array(), elsewhere = ordered_json::array(), refused = ordered_json::array();
  const auto refuse = [&](const Error& error) {
    refused.push_back({{"message", error.message}});
    status = std::max(status, console.fail(error));
  };
  for (const Error& error : work.refused) refuse(error);
  const DrainOptions drain{options.settle, options.job, options.wait, options.max_bytes_per_s, options.timeout_s};
  if (options.foreground) {
    const auto drained = drain_here(work.entries, drain);
    if (!drained) return console.fail(drained.error());
    for (const Error& error : drained->refused) refuse(error);
    if (drained->gave_up > 0)
      refuse({ErrorKind::infeasible,
              fmt::format("redirects given up: {}, their data are kept; 'iosig status' says why", drained->gave_up)});
    return status;
  }
  const auto started = start_drain(work.entries, drain, words_of_service(options));
  if (!started) return console.fail(started.error());
  for (const JournalEntry& entry : started->taken) taken.push_back(entry.path);
  for (const JournalEntry& entry : started->busy) elsewhere.push_back(entry.path);
  for (const Error& error : started->refused) refuse(error);
  if (console.json) {
    console.say_json("iosig.finalize/1",
                     {{"dry_run", false},
                      {"settled", ordered_json::array()},
                      {"settled_by_another_run", ordered_json::array()},
                      {"refused", refused},
                      {"nothing_at", work.nothing_at},
                      {"drain",
                       {{"pid", started->pid},
                        {"unit", started->unit.empty() ? ordered_json() : ordered_json(started->unit)},
                        {"log", started->log_path},
                        {"draining", taken},
                        {"drained_by_another", elsewhere}}}});
    return status;
  }
  for (const std::string& path : work.nothing_at)
    console.say(fmt::format("'{}': nothing is redirected there", printable(path)));
  for (const JournalEntry& entry : started->busy)
    console.say(fmt::format("'{}': another drain has it", printable(entry.path)));
  if (!started->no_service.empty()) console.note(started->no_service + "; a process drains instead");
  if (started->pid != 0 || !started->unit.empty())
    console.say(fmt::format("{} drains {} in the background; iosig status shows it, '{}' is its log", text_of(*started),
                            started->taken.empty() ? fmt::format("what job '{}' will redirect", printable(options.job))
                                                   : one_or_count(started->taken.front().path, started->taken.size()),
                            printable(started->log_path)));
  else if (work.entries.empty() && work.refused.empty() && work.nothing_at.empty())
    console.say("nothing is redirected");
  if (!started->unit.empty() && !services_outlive_logins())
    console.note("your services end with your last login here; 'loginctl enable-linger' lets them go on");
  return status;
}

int run_finalize(FinalizeArguments options, Console& console) {
  if (auto sound = complete(options); !sound) return console.fail(sound.error());
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a copy beyond the limit of file sizes fails, and its names are removed
  if (!options.job.empty() && !options.background && !options.settle.dry_run) {
    auto ended = wait_for_job(options, console);
    console.end_progress();
    if (!ended) return console.fail(ended.error());
  }
  Result<Fd> lock = Fd{};
  if (!options.settle.dry_run) lock = join_journal();
  if (!lock) return console.fail(lock.error());
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  if (!options.all)
    for (const Unreadable& entry : journal->unreadable) console.note(entry.error.message);
  const Work work = gather(options, *journal, console);
  if (options.background) {
    lock = Fd{};  // the drain locks the journal while it settles, not while it waits
    return run_in_background(options, work, console);
  }

  int status = yes;
  ordered_json settled = ordered_json::array(), refused = ordered_json::array(), elsewhere = ordered_json::array();
  const auto refuse = [&](const Error& error) {
    console.end_progress();
    refused.push_back({{"message", error.message}});
    status = std::max(status, console.fail(error));
  };
  for (const Error& error : work.refused) refuse(error);
  if (!work.entries.empty()) options.settle.open_files = open_redirected_files();
  RateLimit limit(options.max_bytes_per_s);
  options.settle.copy.pace = [&](std::uint64_t bytes) { limit.take(bytes); };
  const auto report = [&](const JournalEntry& entry, const Settled& result) {
    if (const auto* error = std::get_if<Error>(&result)) return refuse(*error);
    const auto* done = std::get_if<Settlement>(&result);
    if (done == nullptr) return elsewhere.push_back(entry.path);
    if (!console.json) {
      console.end_progress();
      console.say(done->text);
    }
    settled.push_back({{"path", done->path},
                       {"destination", entry.destination},
                       {"action", name_of(done->action)},
                       {"data_bytes", done->data_bytes},
                       {"companions", done->companions},
                       {"dangling_links", done->dangling_links},
                       {"message", done->text}});
  };
  settle_each(work.entries, options.settle, options.jobs, console, report);
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
  if (options.paths.empty() && work.entries.empty() && work.refused.empty()) console.say("nothing is redirected");
  return status;
}

}  // namespace

void add_finalize(Verb app, Action& action) {
  const Verb verb = app.add_verb("finalize", "After a run: bring data home, delete temporary data");
  const auto options = std::make_shared<FinalizeArguments>();
  verb.add_option("PATH", options->paths, "paths that were redirected (or directories of --make-folder)")
      .type_name("PATH");
  verb.add_flag("--all", options->all, "everything in the journal, except data that may rest where they are");
  verb.add_flag("--home", options->home, "with --all or --job: bring resting data home too");
  verb.add_option("--job", options->job, "everything that this batch job redirected; session:N: that this session did")
      .type_name("ID");
  verb.add_flag("--wait", options->wait, "with --job: wait for the end of the job");
  verb.add_flag("--background", options->background,
                "start a user service or a process that brings each file home when its program has closed it");
  verb.add_flag("--foreground", options->foreground, "with --background: drain in this process, as a service does");
  verb.add_option("--timeout", options->timeout, "give up after this time (--wait: no limit; --background: 7d)")
      .type_name("TIME");
  verb.add_flag("--keep-temp", options->settle.keep_temp, "bring temporary data home too");
  verb.add_flag("--drop-orphans", options->settle.drop_orphans,
                "delete data to which no link in their directory leads, and forget data that cannot be reached");
  verb.add_flag("--force", options->settle.force, "settle even while a process has the data open");
  verb.add_option("--verify", options->verify,
                  "compare copies: 'copy' through the page cache while copying (the default), 'full' from the device")
      .check(one_of({"copy", "full", "none"}));
  verb.add_option("--jobs", options->jobs, "settle so many redirects at once (0: 64, of files above 1 MB 4)")
      .type_name("N")
      .check(count_between(0, 256));
  verb.add_option("--max-rate", options->max_rate, "copy at most so much in a second, e.g. 200MB/s").type_name("RATE");
  verb.add_flag("--dry-run", options->settle.dry_run, "show what would be done; change nothing");
  verb.footer(
      "Persistent data are copied beside the link, compared, and put in its place in one rename; killed or refused at "
      "any point, they stay reachable; a second run undoes what that run left, and starts again. Safe to repeat.\n"
      "Exit status: 0 all settled, 1 something could not be (it says why, nothing is lost).\n"
      "Example: iosig finalize --all\n"
      "         iosig finalize --job 4711 --wait\n"
      "         iosig finalize --background --max-rate 200MB/s out.dat");
  verb.when_chosen(action, "iosig.finalize/1", [options](Console& console) { return run_finalize(*options, console); });
}

}  // namespace iosig::cli
