#include "iosig/enact/recover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "iosig/base/text.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/home.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

using Outcome = Recovery::Outcome;

/// Settles the redirect; leaves it if settling is refused.
Result<Recovery> settle_as(Outcome outcome, const JournalEntry& entry, const SettleOptions& options, std::string why) {
  const auto settled = settle(entry, options);
  if (settled) return Recovery{outcome, settled->path, std::move(why)};
  if (settled.error().kind != ErrorKind::infeasible) return pass_on(settled.error());
  return Recovery{Outcome::left, entry.path, settled.error().message};
}

/// Returns why the state of this redirect proves nothing; empty: its maker is dead.
std::string doubt(const JournalEntry& entry) {
  switch (maker_of(entry)) {
    case Life::alive: return fmt::format("process {}, which redirected it, is at work", entry.pid);
    case Life::unknown: return "it cannot be told whether the process that redirected it still lives";
    case Life::dead: break;
  }
  return {};
}

Recovery leave(const Survey& found, std::string why) { return {Outcome::left, found.path, std::move(why)}; }

/// A link leads to the data. If they are retired, a run of finalize was killed between retiring and deleting them.
Result<Recovery> recover_linked(const JournalEntry& entry, const Survey& found, const SettleOptions& options) {
  if (!found.destination->is_retired)
    return leave(found, "its data are redirected; iosig finalize brings them home or drops them");
  if (!options.dry_run)
    if (auto restored = restore_retired(entry); !restored) return leave(found, restored.error().message);
  return Recovery{Outcome::undone, found.path,
                  "a run that settled it was cut short; its data are redirected as before"};
}

/// There are no data, and perhaps a link: the maker may be about to write them.
Result<Recovery> recover_unused(const JournalEntry& entry, const Survey& found, const SettleOptions& options) {
  const bool is_gone = found.state == RedirectState::gone;
  if (is_gone && found.destination && found.destination->is_retired)
    return settle_as(Outcome::finished, entry, options, "its data had come home; what was left of them is removed");
  if (auto why = doubt(entry); !why.empty()) return leave(found, std::move(why));
  if (is_gone) return settle_as(Outcome::undone, entry, options, "neither link nor data are there");
  if (entry.kind == RedirectKind::directory) return leave(found, "a job's directory that waits for its job");
  if (entry.by == RedirectedBy::prepare) return leave(found, "it waits for its run");
  return settle_as(Outcome::undone, entry, options, "its program ended before it wrote anything");
}

/// There are data, and no link leads to them.
Result<Recovery> recover_unlinked(const JournalEntry& entry, const Survey& found, const SettleOptions& options) {
  const bool temporary = entry.signature.lifetime == Lifetime::temp;
  if (!temporary && found.state == RedirectState::orphan)
    return leave(found, "the link is gone, the data are kept; iosig finalize says how to resolve it");
  if (auto why = doubt(entry); temporary && !why.empty()) return leave(found, std::move(why));
  return settle_as(Outcome::finished, entry, options,
                   temporary ? "temporary data without a link are dropped" : "the copy at its path is complete");
}

/// Recovers from the state alone, after the traces of a killed run are gone. Example: a program was killed between its
/// journal entry and its link. The state is `gone` and the maker is dead, so the entry is removed: `undone`.
Result<Recovery> recover_state(const JournalEntry& entry, const Survey& found, const SettleOptions& options) {
  switch (found.state) {
    case RedirectState::unreachable:
      return leave(found, (found.is_home_unreachable ? "cannot look for its link: " : "its data cannot be reached: ") +
                              found.why);
    case RedirectState::linked: return recover_linked(entry, found, options);
    case RedirectState::filled: return leave(found, "a job's directory; iosig gc removes it when the job has ended");
    case RedirectState::gone:
    case RedirectState::empty: return recover_unused(entry, found, options);
    case RedirectState::orphan:
    case RedirectState::replaced: return recover_unlinked(entry, found, options);
  }
  return leave(found, "unknown state");
}

/// Removes the redirect's directory if it is empty. In a dry run, only returns whether it would.
bool remove_if_empty(const Fd& parent, const std::string& name, bool dry_run) {
  if (!dry_run) return ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0;
  const Fd directory(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto names = directory ? names_in(directory) : Result<std::vector<std::string>>(std::vector<std::string>{name});
  return names && names->empty();
}

/// Returns the path of data of the redirect `id` in this user's directories; empty: none.
Result<std::string> data_of(std::string_view id, const std::vector<std::string>& mount_points, bool dry_run) {
  for (const std::string& mount_point : mount_points) {
    const auto directory = open_user_directory(mount_point, IfMissing::refuse);
    if (!directory) continue;
    const auto names = names_in(directory->fd);
    if (!names) return pass_on(names.error());
    for (const std::string& name : *names)
      if (name.starts_with(id) && (name != id || !remove_if_empty(directory->fd, name, dry_run)))
        return directory->path + "/" + name;
  }
  return {};
}

/// Opens the entry's file at least a second after its last modification, by the clock that set that time.
Result<Fd> open_when_quiet(const std::string& path) {
  for (int rounds = 0;; ++rounds) {
    Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno == ENOENT) return file;
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) return system_failure("look at", path);
    if (rounds == 1 || std::abs(std::time(nullptr) - status.st_mtim.tv_sec) > 1) return file;
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
  }
}

}  // namespace

const char* name_of(Recovery::Outcome outcome) {
  switch (outcome) {
    case Outcome::finished: return "finished";
    case Outcome::undone: return "undone";
    case Outcome::left: return "left";
  }
  return "";
}

Result<Recovery> recover(const JournalEntry& recorded, const SettleOptions& options) {
  const JournalEntry entry = at_home(recorded);
  Survey found = survey(entry, options.links);
  if (!found.cut_short || found.state == RedirectState::unreachable) return recover_state(entry, found, options);
  if (!found.has_data && !found.has_companions())
    return settle_as(Outcome::finished, entry, options, "a run of finalize was killed; what it had copied is complete");
  Recovery undone{Outcome::undone, found.path, "a run of finalize was killed; the data are redirected as before"};
  if (options.dry_run) return undone;
  if (auto back = undo_killed_run(entry); !back) {
    if (back.error().kind != ErrorKind::infeasible) return pass_on(back.error());
    return Recovery{Outcome::left, found.path, back.error().message};
  }
  found = survey(entry, options.links);
  if (found.state == RedirectState::linked) return undone;
  return recover_state(entry, found, options);
}

Result<Recovery> recover(const Unreadable& entry, const std::vector<std::string>& mount_points, bool dry_run) {
  const auto left = [&](std::string why) { return Recovery{Outcome::left, entry.path, std::move(why)}; };
  if (!entry.is_cut) return left(entry.error.message);
  const auto file = open_when_quiet(entry.path);
  if (!file) return pass_on(file.error());
  if (!*file) return left("another iosig has settled it");
  char last[2] = {};
  struct stat status {};
  if (is_open_elsewhere(file->get())) return left("a process is writing it");
  if (::fstat(file->get(), &status) != 0) return system_failure("look at", entry.path);
  if (status.st_size >= 2 && ::pread(file->get(), last, 2, status.st_size - 2) == 2 && last[0] == '}' &&
      last[1] == '\n')
    return left("another process has just written it");
  const std::size_t slash = entry.path.rfind('/') + 1;
  const auto data = data_of(entry.path.substr(slash, entry.path.rfind('.') - slash), mount_points, dry_run);
  if (!data) return pass_on(data.error());
  if (!data->empty())
    return left(fmt::format("the entry was cut, but its data are in '{}'; run finalize on the link that leads there",
                            printable(*data)));
  if (!dry_run && ::unlink(entry.path.c_str()) != 0 && errno != ENOENT)
    return system_failure("remove the journal entry", entry.path);
  return Recovery{Outcome::undone, entry.path, "a journal entry whose writer was killed"};
}

}  // namespace iosig
