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
#include "iosig/enact/maker.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/seal.h"
#include "iosig/enact/user_folder.h"

namespace iosig {
namespace {

/// Bytes in a tree and when anything in it last changed.
struct Extent {
  std::uint64_t data_bytes = 0;
  std::int64_t changed_unix_s = 0;
};

/// The mount that `opened` belongs to: a bind mount has its device in common with what surrounds it.
std::uint64_t mount_of(const Fd& opened) {
  struct statx status {};
  return ::statx(opened.get(), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) == 0 ? status.stx_mnt_id : 0;
}

Fd open_folder(const Fd& parent, const std::string& name) {
  return Fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Adds up `name` and what is in it; what cannot be looked at counts nothing.
void add_up(const Fd& parent, const std::string& name, Extent& extent) {
  struct stat status {};
  if (::fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  extent.changed_unix_s = std::max<std::int64_t>(extent.changed_unix_s, status.st_mtim.tv_sec);
  if (S_ISREG(status.st_mode)) extent.data_bytes += static_cast<std::uint64_t>(status.st_size);
  if (!S_ISDIR(status.st_mode)) return;
  const Fd folder = open_folder(parent, name);
  const auto names = folder ? names_in(folder) : std::vector<std::string>{};
  if (names)
    for (const std::string& inner : *names) add_up(folder, inner, extent);
}

/// Removes `name` and all in it; follows no link, and stops at what is mounted there.
Result<void> remove_tree(const Fd& parent, const std::string& name, const std::string& shown) {
  if (::unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return system_failure("remove", shown);
  const Fd folder = open_folder(parent, name);
  if (!folder) return system_failure("open the folder", shown);
  if (mount_of(folder) != mount_of(parent))
    return fail(ErrorKind::infeasible, "'{}': something is mounted there; it stays", printable(shown));
  const auto names = names_in(folder);
  if (!names) return pass_on(names.error());
  for (const std::string& inner : *names)
    if (auto removed = remove_tree(folder, inner, fmt::format("{}/{}", shown, inner)); !removed) return removed;
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return system_failure("remove", shown);
}

/// Why the temporary data of a redirect are kept; empty: nobody wants them any more.
std::string reason_to_keep(const JournalEntry& entry, std::int64_t changed_unix_s, const CollectOptions& options) {
  if (entry.by == RedirectedBy::prepare) return "prepared; iosig finalize drops it";
  switch (job_of(entry)) {
    case Life::alive: return fmt::format("its job (session {}) still runs", entry.session);
    case Life::unknown: return fmt::format("whether its job on '{}' still runs cannot be told", printable(entry.host));
    case Life::dead: break;
  }
  // A clock that was set back makes things younger, never older.
  const auto idle_s = std::max<std::int64_t>(0, std::time(nullptr) - std::max(entry.created_unix_s, changed_unix_s));
  if (static_cast<double>(idle_s) < options.older_than_s)
    return fmt::format("its job is dead, but it changed {} ago", about_seconds(static_cast<double>(idle_s)));
  const auto open = options.open_files.lower_bound(entry.destination);
  const bool in_use = open != options.open_files.end() &&
                      (open->first == entry.destination || open->first.starts_with(entry.destination + "/"));
  return in_use ? fmt::format("process {} has it open", open->second) : std::string{};
}

/// Nothing: no leftover.
Result<std::optional<Leftover>> collect_entry(const JournalEntry& entry, const CollectOptions& options) {
  const Survey found = survey(entry);
  if (!found.destination) return std::nullopt;  // out of reach: not on a mount point of this machine now
  const Fd& folder = found.destination->folder;
  Extent extent;
  add_up(folder, found.destination->name, extent);
  Leftover leftover{false, entry.destination, extent.data_bytes, {}};
  const bool stays = entry.kind == RedirectKind::link && stays_sealed(*found.destination, entry.signature);
  if (entry.signature.lifetime != Lifetime::temp || stays) {
    if (found.state != RedirectState::orphan) return std::nullopt;  // iosig finalize knows what to do
    leftover.why = fmt::format("data of '{}' to which no link leads; iosig finalize says how to resolve it",
                               printable(entry.path));
    return leftover;
  }
  leftover.why = reason_to_keep(entry, extent.changed_unix_s, options);
  if (!leftover.why.empty()) return leftover;
  if (!options.dry_run) {
    if (entry.kind == RedirectKind::folder)
      if (auto gone = remove_tree(folder, found.destination->name, entry.destination); !gone)
        return pass_on(gone.error());
    SettleOptions settle_options;
    settle_options.open_files = options.open_files;
    if (auto settled = settle(entry, settle_options); !settled) return pass_on(settled.error());
  }
  leftover.removed = true;
  leftover.why = entry.kind == RedirectKind::folder ? "folder of a dead job" : "temporary data of a dead job";
  return leftover;
}

}  // namespace

std::vector<Result<Leftover>> collect(const Journal& journal, const std::vector<std::string>& mount_points,
                                      const CollectOptions& options) {
  std::vector<Result<Leftover>> all;
  std::set<std::string> known;
  for (const JournalEntry& entry : journal.entries) {
    known.insert(entry.destination);
    auto leftover = collect_entry(entry, options);
    if (!leftover)
      all.push_back(pass_on(std::move(leftover.error())));
    else if (*leftover)
      all.push_back(**std::move(leftover));
  }
  for (const std::string& mount_point : mount_points) {
    const auto folder = open_user_folder(mount_point, IfMissing::refuse);
    if (!folder) continue;
    if (!options.dry_run) release_stale(*folder);
    const auto names = names_in(folder->fd);
    if (!names) {
      all.push_back(pass_on(names.error()));
      continue;
    }
    const std::set<std::string> there(names->begin(), names->end());
    std::set<std::string> manifests;
    for (const std::string& name : *names) manifests.insert(manifest_name(name));
    for (const std::string& name : *names) {
      std::string path = folder->path + "/" + name;
      if (name.starts_with('.') || known.contains(path) || manifests.contains(name) || options.accounted.contains(path))
        continue;
      Extent extent;
      add_up(folder->fd, name, extent);
      const bool is_sealed = there.contains(manifest_name(name));
      all.push_back(Leftover{false, std::move(path), extent.data_bytes,
                             is_sealed
                                 ? "sealed; iosig verify-file holds it against its checksum"
                                 : "no journal entry knows it; a link may lead there: iosig finalize LINK, or rm"});
    }
  }
  return all;
}

}  // namespace iosig
