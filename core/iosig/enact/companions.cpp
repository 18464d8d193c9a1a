#include "iosig/enact/companions.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "iosig/base/text.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

std::string staging_name(const JournalEntry& entry) { return fmt::format(".iosig-{}.companions", entry.id); }

constexpr int directory_flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Opens the staging directory if a run of this user made it: it has the mark, or is still empty. Otherwise returns an
/// empty descriptor. Fails if that cannot be found out.
Result<Fd> open_staging(const Place& link, const JournalEntry& entry) {
  const std::string name = staging_name(entry), shown = fmt::format("{}/{}", link.directory_path, name);
  Fd staging(::openat(link.directory.get(), name.c_str(), O_RDONLY | directory_flags));
  const bool is_foreign = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES;
  if (!staging && is_foreign) return Fd{};
  struct stat status {
  }, mark{};
  if (!staging || ::fstat(staging.get(), &status) != 0) return system_failure("open", shown);
  if (status.st_uid != ::geteuid()) return Fd{};
  if (::fstatat(staging.get(), name.c_str(), &mark, AT_SYMLINK_NOFOLLOW) == 0)
    return S_ISREG(mark.st_mode) && mark.st_uid == ::geteuid() ? std::move(staging) : Fd{};
  if (errno != ENOENT) return system_failure("inspect", shown);
  const auto names = names_in(staging);
  if (!names) return pass_on(names.error());
  return names->empty() ? std::move(staging) : Fd{};
}

/// Creates the staging directory and its mark.
Result<Fd> make_staging(const Place& link, const JournalEntry& entry) {
  const std::string name = staging_name(entry);
  if (::mkdirat(link.directory.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return write_failure("create a directory in", link.directory_path, errno);
  const Fd made(::openat(link.directory.get(), name.c_str(), O_PATH | directory_flags));
  struct stat status {};
  if (made && ::fstat(made.get(), &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 0700) != 0700)
    (void)::chmod(fmt::format("/proc/self/fd/{}", made.get()).c_str(), 0700);  // the umask denied this user access
  auto opened = open_staging(link, entry);
  if (!opened) return opened;
  Fd staging = *std::move(opened);
  if (!staging)
    return fail(ErrorKind::system,
                "'{}/{}' is not a directory that a run of yours made, so nothing is put there; have it removed",
                printable(link.directory_path), name);
  const Fd mark(::openat(staging.get(), name.c_str(), O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!mark) return write_failure("create a file in", link.directory_path, errno);
  return staging;
}

/// False only if the name certainly does not exist.
bool exists_at(int directory, const std::string& name) {
  struct stat status {};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

bool is_one_file(int directory, const std::string& name, int other_directory, const std::string& other_name) {
  struct stat one {
  }, other{};
  return ::fstatat(directory, name.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstatat(other_directory, other_name.c_str(), &other, AT_SYMLINK_NOFOLLOW) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Fd open_file(int directory, const std::string& name) { return open_own_to_read(directory, name); }

Result<void> remove_name(const Place& link, int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return system_failure("remove", fmt::format("{}/{}", link.directory_path, name));
}

/// Whether the link at home has the target that the companion would get there.
Result<bool> is_link_at_home(const Place& home, const Destination& from, const Companion& companion) {
  const auto place = beside(home, companion.home_name), original = beside(from.data, companion.name);
  if (!place || !original) return pass_on(!place ? place.error() : original.error());
  const auto target = link_target(*original);
  return target && link_target(*place) == target_at_home(from, *target);
}

/// Whether the file at home has the companion's content. `watch` and `held`: as for is_at_home().
Result<bool> is_copy_at_home(const Place& home, const Place& data, const Companion& companion, ChangeWatch& watch,
                             std::vector<Fd>& held) {
  Fd copy = open_file(home.directory.get(), companion.home_name),
     original = open_file(data.directory.get(), companion.name);
  if (!copy || !original) return false;
  const std::size_t index = watch.add(companion.name, std::move(original));
  auto same = same_content(copy.get(), watch.file(index).get(), {});
  if (!same || !*same) return same;
  // The original will be deleted.
  if (auto synced = sync_file(copy, fmt::format("{}/{}", home.directory_path, companion.home_name)); !synced)
    return pass_on(synced.error());
  watch.set_copy(index, copy);
  held.push_back(std::move(copy));
  return true;
}

/// Removes the placed file `name` unless a program has used it.
Result<void> unplace(const Place& link, const std::string& name) {
  const auto place = beside(link, name);
  if (!place) return pass_on(place.error());
  if (!link_target(*place)) {
    const auto used = may_be_used(*place, /*held=*/nullptr);
    if (!used) return pass_on(used.error());
    if (*used) return {};
  }
  return remove_at(*place);
}

}  // namespace

CompanionsHome::CompanionsHome(const Place& link, const JournalEntry& entry, const Destination& destination)
    : link_(link), entry_(entry), from_(destination) {}

Result<void> CompanionsHome::check_name(const Companion& companion) const {
  const std::string& wanted = companion.home_name;
  const auto cannot = [&](const std::string& why) {
    return fail(
        ErrorKind::infeasible,
        "'{}': its companion '{}/{}' cannot come home, because {}; rename or remove it, then run finalize again",
        printable(entry_.path), printable(from_.data.directory_path), printable(companion.name), why);
  };
  if (wanted.size() > NAME_MAX) return cannot(fmt::format("'{}' is too long for a name", printable(wanted)));
  if (wanted.starts_with(fmt::format(".iosig-{}.", entry_.id)))
    return cannot(fmt::format("finalize itself needs the name '{}'", printable(wanted)));
  for (const Companion& other : from_.companions)
    if (&other != &companion && other.home_name == wanted)
      return cannot(fmt::format("'{}/{}' becomes '{}', too", printable(from_.data.directory_path),
                                printable(other.name), printable(wanted)));
  return {};
}

Result<void> CompanionsHome::check() const {
  for (const Companion& companion : from_.companions) {
    const std::string name = printable(companion.name);
    if (auto sound = check_name(companion); !sound) return sound;
    if (companion.kind == Companion::Kind::other)
      return fail(
          ErrorKind::infeasible,
          "'{}': its companion '{}/{}' is neither a file nor a link, so it cannot come home; move or remove it, "
          "then run finalize again",
          printable(entry_.path), printable(from_.data.directory_path), name);
    ChangeWatch watch(from_.data.directory);
    std::vector<Fd> held;
    const auto home = is_at_home(link_, from_, companion, watch, held);
    if (!home) return pass_on(home.error());
    if (!*home && exists_at(link_.directory.get(), companion.home_name))
      return fail(
          ErrorKind::infeasible,
          "'{}': its companion '{}/{}' cannot come home, because '{}/{}' is another file; move or remove one of "
          "them, then run finalize again",
          printable(entry_.path), printable(from_.data.directory_path), name, printable(link_.directory_path),
          printable(companion.home_name));
  }
  return {};
}

Result<void> CompanionsHome::stage(bool one_device, ChangeWatch& watch, const CopyOptions& options) {
  if (from_.companions.empty()) return {};
  auto staging = make_staging(link_, entry_);
  if (!staging) return pass_on(staging.error());
  staging_ = *std::move(staging);
  for (const Companion& companion : from_.companions)
    if (auto staged = stage_one(companion, one_device, watch, options); !staged) return staged;
  return sync_file(staging_, link_.directory_path);
}

/// Example: `a.db-wal` beside the data becomes `.iosig-<id>.companions/a.db-wal`. On one file system it is a second
/// name of the same file, on two it is a verified copy. Nothing is at home yet, so a kill -9 leaves only the staging
/// directory, which the next run removes.
///
/// 1. Already at home (placed by an earlier run, or by a program): nothing to stage.
/// 2. Remove what a killed run left under the name.
/// 3. Watch the companion, then link or copy it. A change after this point is detected, one before it is copied.
Result<void> CompanionsHome::stage_one(const Companion& companion, bool one_device, ChangeWatch& watch,
                                       const CopyOptions& options) {
  const auto home = is_at_home(link_, from_, companion, watch, held_);
  if (!home) return pass_on(home.error());
  if (*home) return {};
  staged_.push_back(&companion);
  if (auto removed = remove_name(link_, staging_.get(), companion.home_name); !removed) return removed;
  if (companion.kind == Companion::Kind::link) return stage_link(companion, watch);
  if (one_device) {
    if (auto watched = watch.add_name(companion.name); !watched) return watched;
    const int from = from_.data.directory.get();
    if (::linkat(from, companion.name.c_str(), staging_.get(), companion.home_name.c_str(), 0) == 0) return {};
  }
  return stage_copy(companion, watch, options);
}

/// Step 3 of stage_one() for a symbolic link: it may lead to a file that is renamed on its way home.
Result<void> CompanionsHome::stage_link(const Companion& companion, ChangeWatch& watch) {
  const auto source = beside(from_.data, companion.name);
  if (!source) return pass_on(source.error());
  if (auto watched = watch.add_name(companion.name); !watched) return watched;
  const auto target = link_target(*source);
  if (!target && (errno == ENOENT || errno == EINVAL)) return just_removed(from_.data.directory_path, companion.name);
  if (!target || ::symlinkat(target_at_home(from_, *target).c_str(), staging_.get(), companion.home_name.c_str()) != 0)
    return write_failure("copy the link", source->path(), errno);
  return {};
}

/// Step 3 of stage_one() for a file of another file system, or of one without hard links.
Result<void> CompanionsHome::stage_copy(const Companion& companion, ChangeWatch& watch, const CopyOptions& options) {
  Fd data = open_file(from_.data.directory.get(), companion.name);
  if (!data && errno == ENOENT) return just_removed(from_.data.directory_path, companion.name);
  if (!data) return system_failure("read", fmt::format("{}/{}", from_.data.directory_path, companion.name));
  const std::size_t index = watch.add(companion.name, std::move(data));
  Fd staging(::fcntl(staging_.get(), F_DUPFD_CLOEXEC, 0));
  const auto to = place_in(std::move(staging), companion.home_name);
  if (!to) return pass_on(to.error());
  auto copy = copy_verified(watch.file(index), *to, options);
  if (!copy) return fail(copy.error().kind, "'{}': {}", printable(companion.name), copy.error().message);
  watch.set_copy(index, copy->file);
  held_.push_back(std::move(copy->file));
  return {};
}

Result<void> CompanionsHome::place() {
  for (const Companion* companion : staged_)
    if (auto placed = place_one(*companion); !placed) return placed;
  return {};
}

Result<void> CompanionsHome::place_one(const Companion& companion) {
  const int home = link_.directory.get();
  const char* name = companion.home_name.c_str();
  if (::linkat(staging_.get(), name, home, name, 0) == 0) return {};
  if (errno != EEXIST) {  // the file system has no hard links
    if (::renameat2(staging_.get(), name, home, name, RENAME_NOREPLACE) == 0 ||
        (errno != EEXIST && !exists_at(home, companion.home_name) &&
         ::renameat(staging_.get(), name, home, name) == 0)) {
      moved_.push_back(companion.home_name);
      return {};
    }
  }
  if (errno != EEXIST)
    return write_failure("put a companion at", fmt::format("{}/{}", link_.directory_path, name), errno);
  return fail(ErrorKind::infeasible,
              "'{}': a program has just made '{}/{}', which its companion is called; settle it "
              "afterwards",
              printable(entry_.path), printable(link_.directory_path), printable(companion.home_name));
}

Result<void> CompanionsHome::undo() {
  held_.clear();
  for (const std::string& name : moved_)
    if (auto gone = unplace(link_, name); !gone) return gone;
  moved_.clear();
  return unstage_companions(link_, entry_, Placed::remove);
}

Result<void> CompanionsHome::finish() {
  held_.clear();
  return unstage_companions(link_, entry_, Placed::keep);
}

bool is_own(const struct stat& there, const Place& home, const struct stat& data) {
  struct stat directory {};
  return there.st_uid == ::geteuid() || there.st_uid == data.st_uid ||
         (::fstat(home.directory.get(), &directory) == 0 && there.st_uid == directory.st_uid);
}

/// Example: `a.db-wal` at home is a verified copy that a killed run placed, and the original is still beside the data:
/// two files of one size and content, so true. `a.db-wal` of another user, or of another content: false, and check()
/// refuses to bring the data home over it.
Result<bool> is_at_home(const Place& home, const Destination& from, const Companion& companion, ChangeWatch& watch,
                        std::vector<Fd>& held) {
  const Place& data = from.data;
  struct stat there {
  }, here{};
  if (::fstatat(home.directory.get(), companion.home_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (::fstatat(data.directory.get(), companion.name.c_str(), &here, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!is_own(there, home, here)) return false;
  const bool is_same = there.st_dev == here.st_dev && there.st_ino == here.st_ino;
  // Watched before the link is read, or the inode is compared once more.
  if (companion.kind == Companion::Kind::link || is_same)
    if (auto watched = watch.add_name(companion.name); !watched) return pass_on(watched.error());
  if (companion.kind == Companion::Kind::link) return is_link_at_home(home, from, companion);
  if (is_same) return is_one_file(home.directory.get(), companion.home_name, data.directory.get(), companion.name);
  if (there.st_size != here.st_size) return false;
  return is_copy_at_home(home, data, companion, watch, held);
}

bool has_staged_companions(const Place& link, const JournalEntry& entry) {
  if (!exists_at(link.directory.get(), staging_name(entry))) return false;
  const auto staging = open_staging(link, entry);
  return !staging || *staging;
}

Result<void> unstage_companions(const Place& link, const JournalEntry& entry, Placed placed) {
  const auto opened = open_staging(link, entry);
  if (!opened) return pass_on(opened.error());
  const Fd& staging = *opened;
  if (!staging) return {};
  const auto names = names_in(staging);
  if (!names) return pass_on(names.error());
  const std::string mark = staging_name(entry);
  for (const std::string& name : *names) {
    if (name == mark) continue;
    if (placed == Placed::remove && is_one_file(link.directory.get(), name, staging.get(), name))
      if (auto gone = unplace(link, name); !gone) return gone;
    if (auto removed = remove_name(link, staging.get(), name); !removed) return removed;
  }
  if (auto removed = remove_name(link, staging.get(), mark); !removed) return removed;
  if (::unlinkat(link.directory.get(), staging_name(entry).c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return system_failure("remove the directory", fmt::format("{}/{}", link.directory_path, staging_name(entry)));
}

}  // namespace iosig
