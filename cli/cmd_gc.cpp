// `iosig gc`: **deletes the leftovers** of dead jobs on the mount points, and lists this user's other data there.

#include <fcntl.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/container/admin/target_data.h"
#include "iosig/enact/collect.h"
#include "iosig/enact/place.h"
#include "iosig/enact/user_directory.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct GcArguments {
  std::string older_than = "1d";
  bool containers = false, unknown = false, dry_run = false;
  std::vector<std::string> directories;  ///< with `unknown`: data of unknown jobs to delete
};

/// Returns why data of a container must stay; "" if they can be deleted.
std::string reason_to_keep(const TargetData& data, const GcArguments& options, double older_than_s,
                           const OpenFiles& open_files) {
  if (data.container.empty()) return "data of a container that they do not name";
  const std::string whose = fmt::format("data of the container '{}'", printable(data.container));
  if (data.state == TargetData::State::unknown) return whose + ", whose directory cannot be looked into now";
  const double idle_s = static_cast<double>(std::max<std::int64_t>(0, std::time(nullptr) - data.changed_unix_s));
  if (idle_s < older_than_s)
    return fmt::format("{}, which is gone from there; they changed {} ago", whose, about_seconds(idle_s));
  if (data.state == TargetData::State::removed)
    return data.is_held ? whose + ", which was removed; a process has it open" : std::string();
  if (const auto open = open_files.lower_bound(data.path + "/");
      open != open_files.end() && open->first.starts_with(data.path + "/"))
    return fmt::format("{}, which is gone from there; process {} has them open", whose, open->second);
  if (options.containers) return {};
  return whose + ", which is gone from there; iosig gc --containers removes them if you have not moved it";
}

/// Returns data of removed containers in this user's directory on a mount point. Adds the paths of all containers' data
/// to `accounted`.
std::vector<Result<Leftover>> collect_container_data(const std::string& mount_point, const GcArguments& options,
                                                     double older_than_s, const OpenFiles& open_files,
                                                     std::set<std::string>& accounted) {
  std::vector<Result<Leftover>> leftovers;
  const auto directory = open_user_directory(mount_point, IfMissing::refuse);
  if (!directory) return leftovers;
  const auto all = target_data_in(directory->path);
  if (!all) return {pass_on(all.error())};
  for (const TargetData& data : *all) {
    accounted.insert(data.path);
    if (data.state == TargetData::State::used) continue;
    const std::string why = reason_to_keep(data, options, older_than_s, open_files);
    if (!why.empty()) {
      leftovers.emplace_back(Leftover{false, data.path, data.data_bytes, why});
      continue;
    }
    const auto removed = options.dry_run ? Result<void>() : remove_target_data(data);
    const std::string_view state =
        data.state == TargetData::State::removed ? "which was removed, and is not open" : "which is gone from there";
    if (removed)
      leftovers.emplace_back(Leftover{true, data.path, data.data_bytes,
                                      fmt::format("data of the container '{}', {}", printable(data.container), state)});
    else
      leftovers.emplace_back(pass_on(removed.error()));
  }
  return leftovers;
}

/// Returns the leftovers of removed containers below `directory`.
std::vector<Result<Leftover>> collect_removed(const std::string& directory, const GcArguments& options,
                                              double older_than_s) {
  std::vector<Result<Leftover>> leftovers;
  const auto all = removed_below(directory);
  if (!all) return {pass_on(all.error())};
  for (const RemovedContainer& each : *all) {
    const double idle_s = static_cast<double>(std::max<std::int64_t>(0, std::time(nullptr) - each.changed_unix_s));
    if (each.is_held || idle_s < older_than_s) {
      leftovers.emplace_back(
          Leftover{false, each.path, each.data_bytes,
                   each.is_held ? std::string("a removed container that a process has open")
                                : fmt::format("a removed container; it changed {} ago", about_seconds(idle_s))});
      continue;
    }
    const auto removed = options.dry_run ? Result<void>() : remove_removed(each.path);
    if (removed)
      leftovers.emplace_back(
          Leftover{true, each.path, each.data_bytes, "a removed container that no process has open any more"});
    else
      leftovers.emplace_back(pass_on(removed.error()));
  }
  return leftovers;
}

/// Returns the path as in the journal: with all symbolic links in the directory resolved.
std::string absolute_path(const std::string& path) {
  const auto place = locate(AT_FDCWD, without_trailing_slashes(path));
  return place ? place->path() : path;
}

/// Returns the leftover at `path` or behind the link at `path`, or nullptr.
const Leftover* leftover_at(const std::vector<Result<Leftover>>& leftovers, const Journal& journal,
                            const std::string& path) {
  const auto found = std::ranges::find_if(leftovers, [&](const Result<Leftover>& leftover) {
    return leftover && (leftover->path == path || std::ranges::any_of(journal.entries, [&](const JournalEntry& entry) {
                          return entry.destination == leftover->path && entry.path == path;
                        }));
  });
  return found == leftovers.end() ? nullptr : &**found;
}

int run_gc(const GcArguments& options, Console& console) {
  const auto older_than_s = parse_seconds(options.older_than);
  if (!older_than_s) return console.fail({ErrorKind::usage, "--older-than: " + older_than_s.error().message});
  if (options.unknown && options.containers)
    return console.fail({ErrorKind::usage, "give either --unknown (jobs) or --containers"});
  Result<Fd> lock = Fd{};
  if (!options.dry_run) lock = join_journal();
  if (!lock) return console.fail(lock.error());
  const auto journal = read_journal();
  if (!journal) return console.fail(journal.error());
  for (const Unreadable& entry : journal->unreadable) console.note(entry.error.message);

  const auto mount_points = known_mount_points(*journal, console);
  CollectOptions wanted;
  wanted.older_than_s = *older_than_s;
  wanted.dry_run = options.dry_run;
  wanted.open_files = open_redirected_files();
  int status = yes;
  std::vector<Result<Leftover>> leftovers;
  if (options.unknown) {
    wanted.only_named = true;
    for (const std::string& path : options.directories) wanted.named.insert(absolute_path(path));
    leftovers = collect(*journal, {}, wanted);
    std::vector<Error> refused;
    for (const std::string& path : options.directories) {
      const Leftover* leftover = leftover_at(leftovers, *journal, absolute_path(path));
      if (leftover != nullptr && leftover->is_unknown) continue;
      const std::string why = leftover != nullptr ? "kept, " + leftover->why
                                                  : "no data of an unknown job; 'iosig gc --unknown' lists those";
      refused.push_back({ErrorKind::infeasible, fmt::format("'{}': {}", printable(path), why)});
    }
    std::erase_if(leftovers, [](const auto& leftover) { return leftover && !leftover->is_unknown; });
    for (Error& error : refused) leftovers.emplace_back(tl::unexpected(std::move(error)));
  } else {
    for (const std::string& mount_point : mount_points)
      for (auto& each :
           collect_container_data(mount_point, options, *older_than_s, wanted.open_files, wanted.accounted))
        leftovers.push_back(std::move(each));
    for (const std::string& directory : options.directories)
      for (auto& each : collect_removed(directory, options, *older_than_s)) leftovers.push_back(std::move(each));
    for (auto& each : collect(*journal, mount_points, wanted)) leftovers.push_back(std::move(each));
  }
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
        .push_back({{"path", leftover->path},
                    {"data_bytes", leftover->data_bytes},
                    {"why", leftover->why},
                    {"unknown", leftover->is_unknown}});
  }
  if (console.json)
    console.say_json("iosig.gc/1",
                     {{"dry_run", options.dry_run}, {"removed", removed}, {"kept", kept}, {"refused", refused}});
  else if (leftovers.empty())
    console.say(options.unknown ? "nothing of an unknown job was left behind" : "nothing was left behind");
  return status;
}

}  // namespace

void add_gc(Verb app, Action& action) {
  const Verb verb = app.add_verb("gc", "Delete what dead jobs left on the mount points");
  const auto options = std::make_shared<GcArguments>();
  verb.add_option("DIRECTORY", options->directories,
                  "also leftovers of removed containers below DIRECTORY, when no program has them open");
  verb.add_option("--older-than", options->older_than, "only data unchanged for this long (default 1d); 0s: everything")
      .type_name("TIME");
  verb.add_flag("--containers", options->containers,
                "also data of containers that are gone; WARNING: a container that was moved counts as gone");
  verb.add_flag("--unknown", options->unknown,
                "list data of jobs whose state is unknown here; remove those given as DIRECTORY");
  verb.add_flag("--dry-run", options->dry_run, "show what would be done; change nothing");
  verb.footer(
      "Removed: temporary data and directories of jobs of which no process lives on this machine. Kept and listed: "
      "persistent data, prepared links, files that no journal entry knows, data of containers that are gone, data of "
      "jobs that cannot be judged from here (on another machine, in another PID namespace).\n"
      "This cannot be undone: look with --dry-run first.\n"
      "Exit status: 0 done, 1 something could not be removed, 4 the system refused.\n"
      "Example: iosig gc --dry-run\n"
      "         iosig gc /scratch/run");
  verb.when_chosen(action, "iosig.gc/1", [options](Console& console) { return run_gc(*options, console); });
}

}  // namespace iosig::cli
