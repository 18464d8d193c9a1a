#include "iosig/enact/collect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/own_file.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/seal.h"
#include "iosig/enact/tree.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

/// Returns the path in the user directory that contains all of a redirect.
std::string top_of(const JournalEntry& entry) {
  const auto parsed = parse_destination(entry.destination);
  return parsed && parsed->has_directory ? entry.destination.substr(0, entry.destination.rfind('/'))
                                         : entry.destination;
}

/// Whether a process has a file there open or mapped, including processes that /proc does not show from here.
bool is_open_unseen(const Fd& parent, const std::string& name) {
  if (const Fd directory{::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)}) {
    const auto names = names_in(directory);
    return names &&
           std::ranges::any_of(*names, [&](const std::string& inner) { return is_open_unseen(directory, inner); });
  }
  const Fd file = open_own_to_read(parent.get(), name);
  return file && is_open_elsewhere(file.get());
}

/// Fills in why the temporary data of a redirect are kept; empty: they may be deleted.
void find_reason_to_keep(const JournalEntry& entry, const Place& top, std::int64_t changed_unix_s,
                         const CollectOptions& options, Leftover& leftover) {
  std::string& why = leftover.why;
  if (entry.by == RedirectedBy::prepare) {
    why = "prepared; iosig finalize drops it";
    return;
  }
  const Life job = job_of(entry);
  const bool is_named = options.named.contains(entry.destination) || options.named.contains(entry.path);
  leftover.is_unknown = job == Life::unknown;
  if (job == Life::alive)
    why = fmt::format("its job (session {}) still runs", entry.session);
  else if (job == Life::unknown && !is_named)
    why = fmt::format(
        "whether its job on '{}' still runs cannot be told from here; if it has ended: iosig gc --unknown '{}'",
        printable(entry.host), printable(entry.destination));
  else if (job == Life::dead && options.only_named)
    why = "its job is dead; iosig gc without --unknown judges it";
  if (!why.empty()) return;
  // A clock that was set back makes files appear younger, never older.
  const auto idle_s = std::max<std::int64_t>(0, std::time(nullptr) - std::max(entry.created_unix_s, changed_unix_s));
  if (job == Life::dead && static_cast<double>(idle_s) < options.older_than_s)
    why = fmt::format("its job is dead, but it changed {} ago", about_seconds(static_cast<double>(idle_s)));
  else if (const int user = user_of(options.open_files, top_of(entry)); user != 0)
    why = fmt::format("process {} has it open", user);
  else if (is_open_unseen(top.directory, top.name))
    why = "a process that cannot be seen from here has it open";
}

/// Whether `name`, one of `names` in the user directory, is sealed data (with a manifest beside it) or a directory that
/// contains some.
bool is_sealed_data(const Fd& parent, const std::string& name, const std::vector<std::string>& names) {
  const auto contains = [](const std::vector<std::string>& all, const std::string& wanted) {
    return std::ranges::find(all, wanted) != all.end();
  };
  if (contains(names, manifest_name(name))) return true;
  const Fd directory(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto inner = directory ? names_in(directory) : Result<std::vector<std::string>>(std::vector<std::string>());
  return inner &&
         std::ranges::any_of(*inner, [&](const std::string& data) { return contains(*inner, manifest_name(data)); });
}

/// **Deletes** retired data whose settlement is complete: their journal entry is gone, and no run is working on them.
Result<bool> remove_settled(const UserDirectory& directory, const std::string& name, const std::set<std::string>& known,
                            bool dry_run) {
  const std::string id(id_in(name).value_or(""));
  if (known.contains(fmt::format("{}/{}", directory.path, id)) || is_recorded(id)) return false;
  if (dry_run) return true;
  const auto lock = lock_entry(id, IfBusy::skip);
  if (!lock) return pass_on(lock.error());
  if (!*lock || is_recorded(id)) return false;
  return remove_tree(directory.fd, name, fmt::format("{}/{}", directory.path, name)).map([] { return true; });
}

/// **Deletes** the leftover of an entry. Killed after remove_tree(): the journal entry stays, and the next run settles
/// it.
Result<void> remove_leftover(const JournalEntry& entry, const Place& top, bool is_unknown,
                             const CollectOptions& options) {
  if (entry.kind == RedirectKind::directory)
    if (auto gone = remove_tree(top.directory, top.name, entry.destination); !gone) return pass_on(gone.error());
  SettleOptions settle_options;
  settle_options.open_files = options.open_files;
  settle_options.force = is_unknown;  // the user named it
  if (auto settled = settle(entry, settle_options); !settled) return pass_on(settled.error());
  return {};
}

std::string of_dead_job(const JournalEntry& entry, bool is_unknown) {
  return fmt::format("{} of a{} job", entry.kind == RedirectKind::directory ? "directory" : "temporary data",
                     is_unknown ? "n unknown" : " dead");
}

/// Deletes the leftover of an entry, or says why it stays; no value: the entry has no leftover.
///
/// Example: temporary data whose job died two days ago. They are not sealed (1), and nothing has them open (2). No
/// other iosig has settled them since the journal was read (3), so they are deleted (4).
Result<std::optional<Leftover>> collect_entry(const JournalEntry& entry, const CollectOptions& options) {
  const Survey found = survey(entry);
  if (!found.destination) return std::nullopt;  // unreachable: not on a mount point of this machine now
  const Place& top = found.destination->directory ? *found.destination->directory : found.destination->data;
  const Extent extent = extent_of(top.directory, top.name);
  Leftover leftover{false, entry.destination, extent.data_bytes, {}};
  // 1. Persistent and sealed data stay.
  const bool stays = entry.kind == RedirectKind::link && stays_sealed(found.destination->data, entry.signature);
  if (entry.signature.lifetime != Lifetime::temp || stays) {
    if (found.state != RedirectState::orphan) return std::nullopt;  // iosig finalize handles it
    leftover.why = fmt::format("data of '{}' to which no link leads; iosig finalize says how to resolve it",
                               printable(entry.path));
    return leftover;
  }
  // 2. Data that may be in use stay.
  if (found.is_home_unreachable)
    leftover.why = "cannot look for its link: " + found.why;
  else
    find_reason_to_keep(entry, top, extent.changed_unix_s, options, leftover);
  if (!leftover.why.empty()) return leftover;
  // 3. Lock the entry, then look whether it is still there. 4. Delete.
  if (!options.dry_run) {
    const auto lock = lock_entry(entry.id, IfBusy::skip);
    if (!lock) return pass_on(lock.error());
    if (!*lock) {
      leftover.why = "another iosig is settling it";
      return leftover;
    }
    if (!is_recorded(entry.id)) return std::nullopt;
    if (auto gone = remove_leftover(entry, top, leftover.is_unknown, options); !gone) return pass_on(gone.error());
  }
  leftover.removed = true;
  leftover.why = of_dead_job(entry, leftover.is_unknown);
  return leftover;
}

/// Adds what lies in this user's directory on one mount point and is neither of the journal, nor a manifest, nor of
/// another component. `known`: the paths of the journal. **Deletes** retired data whose settlement is complete.
void collect_unrecorded(const std::string& mount_point, const std::set<std::string>& known,
                        const CollectOptions& options, std::vector<Result<Leftover>>& all) {
  const auto directory = open_user_directory(mount_point, IfMissing::refuse);
  if (!directory) return;
  if (!options.dry_run) release_stale(*directory);
  const auto names = names_in(directory->fd);
  if (!names) {
    all.push_back(pass_on(names.error()));
    return;
  }
  std::set<std::string> manifests;
  for (const std::string& name : *names) manifests.insert(manifest_name(name));
  for (const std::string& name : *names) {
    std::string path = directory->path + "/" + name;
    if (name.starts_with('.') || known.contains(path) || manifests.contains(name) || options.accounted.contains(path))
      continue;
    const Extent extent = extent_of(directory->fd, name);
    if (is_retired_name(name)) {
      auto removed = remove_settled(*directory, name, known, options.dry_run);
      if (!removed) all.push_back(pass_on(removed.error()));
      if (removed && *removed) all.push_back(Leftover{true, std::move(path), extent.data_bytes, "settled"});
      continue;
    }
    all.push_back(Leftover{false, std::move(path), extent.data_bytes,
                           is_sealed_data(directory->fd, name, *names)
                               ? "sealed; iosig verify-file compares it with its checksum"
                               : "no journal entry names it; a link may lead to it: iosig finalize LINK, or rm"});
  }
}

}  // namespace

std::vector<Result<Leftover>> collect(const Journal& journal, const std::vector<std::string>& mount_points,
                                      const CollectOptions& options) {
  std::vector<Result<Leftover>> all;
  std::set<std::string> known;
  for (const JournalEntry& entry : journal.entries) {
    known.insert(top_of(entry));
    auto leftover = collect_entry(entry, options);
    if (!leftover)
      all.push_back(pass_on(std::move(leftover.error())));
    else if (*leftover)
      all.push_back(**std::move(leftover));
  }
  for (const std::string& mount_point : mount_points) collect_unrecorded(mount_point, known, options, all);
  return all;
}

}  // namespace iosig
