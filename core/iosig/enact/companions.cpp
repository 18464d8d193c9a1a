#include "iosig/enact/companions.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

std::string staging_name(const JournalEntry& entry) { return fmt::format(".iosig-{}.companions", entry.id); }

Fd open_staging(const Place& link, const JournalEntry& entry) {
  return Fd(::openat(link.folder.get(), staging_name(entry).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool exists_at(int folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_one_file(int folder, const std::string& name, int other_folder) {
  struct stat one {
  }, other{};
  return ::fstatat(folder, name.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstatat(other_folder, name.c_str(), &other, AT_SYMLINK_NOFOLLOW) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

Fd open_file(int folder, const std::string& name) { return open_own_to_read(folder, name); }

Result<void> remove_name(const Place& link, int folder, const std::string& name) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return system_failure("remove", fmt::format("{}/{}", link.folder_path, name));
}

/// Removes the placed file `name` unless a program has used it.
Result<void> unplace(const Place& link, const std::string& name) {
  const auto place = beside(link, name);
  if (!place) return pass_on(place.error());
  if (!link_target(*place)) {
    const auto used = may_be_used(*place, /*is_held=*/false);
    if (!used) return pass_on(used.error());
    if (*used) return {};
  }
  return remove_at(*place);
}

}  // namespace

CompanionsHome::CompanionsHome(const Place& link, const JournalEntry& entry, const Destination& destination)
    : link_(link), entry_(entry), from_(destination) {}

Result<void> CompanionsHome::check() const {
  for (const Companion& companion : from_.companions) {
    const std::string name = printable(companion.name);
    if (companion.kind == Companion::Kind::other)
      return fail(
          ErrorKind::infeasible,
          "'{}': its companion '{}/{}' is neither a file nor a link, so it cannot come home; move or remove it, "
          "then run finalize again",
          printable(entry_.path), printable(from_.data.folder_path), name);
    const auto home = is_at_home(link_, from_.data, companion);
    if (!home) return pass_on(home.error());
    if (!*home && exists_at(link_.folder.get(), companion.home_name))
      return fail(
          ErrorKind::infeasible,
          "'{}': its companion '{}/{}' cannot come home, because '{}/{}' is another file; move or remove one of "
          "them, then run finalize again",
          printable(entry_.path), printable(from_.data.folder_path), name, printable(link_.folder_path),
          printable(companion.home_name));
  }
  return {};
}

Result<void> CompanionsHome::stage(bool one_device, ChangeWatch& watch, const Progress& progress) {
  if (from_.companions.empty()) return {};
  if (::mkdirat(link_.folder.get(), staging_name(entry_).c_str(), 0700) != 0 && errno != EEXIST)
    return write_failure("create a directory in", link_.folder_path, errno);
  (void)::fchmodat(link_.folder.get(), staging_name(entry_).c_str(), 0700, 0);
  staging_ = open_staging(link_, entry_);
  struct stat status {};
  if (staging_ && ::fstat(staging_.get(), &status) == 0 && status.st_uid != ::geteuid())
    return fail(ErrorKind::system, "'{}/{}' belongs to user {}, so nothing is put there; have it removed",
                printable(link_.folder_path), staging_name(entry_), status.st_uid);
  if (!staging_)
    return system_failure("open the directory", fmt::format("{}/{}", link_.folder_path, staging_name(entry_)));
  for (const Companion& companion : from_.companions)
    if (auto staged = stage_one(companion, one_device, watch, progress); !staged) return staged;
  if (::fsync(staging_.get()) != 0 && errno != EINVAL) return system_failure("sync", link_.folder_path);
  return {};
}

Result<void> CompanionsHome::stage_one(const Companion& companion, bool one_device, ChangeWatch& watch,
                                       const Progress& progress) {
  const auto home = is_at_home(link_, from_.data, companion, watch, held_);
  if (!home) return pass_on(home.error());
  if (*home) return {};
  const int from = from_.data.folder.get();
  const char *name = companion.name.c_str(), *home_name = companion.home_name.c_str();
  if (auto removed = remove_name(link_, staging_.get(), companion.home_name); !removed) return removed;
  if (companion.kind == Companion::Kind::link) {
    const auto source = beside(from_.data, companion.name);
    if (!source) return pass_on(source.error());
    const auto target = link_target(*source);
    if (!target || ::symlinkat(target->c_str(), staging_.get(), home_name) != 0)
      return write_failure("copy the link", source->path(), errno);
    return {};
  }
  Fd staging(::fcntl(staging_.get(), F_DUPFD_CLOEXEC, 0));
  const auto to = place_in(std::move(staging), companion.home_name);
  if (!to) return pass_on(to.error());
  if (one_device && ::linkat(from, name, staging_.get(), home_name, 0) == 0) {
    watch.add_linked(companion.name, *to);
    return {};
  }
  Fd data = open_file(from, companion.name);
  if (!data) return system_failure("read", fmt::format("{}/{}", from_.data.folder_path, companion.name));
  const std::size_t index = watch.add(companion.name, data);
  auto copy = copy_verified(data, *to, progress);
  if (!copy) return fail(copy.error().kind, "'{}': {}", printable(companion.name), copy.error().message);
  watch.set_copy(index, *copy);
  held_.push_back(std::move(data));
  held_.push_back(*std::move(copy));
  return {};
}

Result<void> CompanionsHome::place() {
  for (const Companion& companion : from_.companions)
    if (exists_at(staging_.get(), companion.home_name))
      if (auto placed = place_one(companion); !placed) return placed;
  return {};
}

Result<void> CompanionsHome::place_one(const Companion& companion) {
  const int home = link_.folder.get();
  const char* name = companion.home_name.c_str();
  if (::linkat(staging_.get(), name, home, name, 0) == 0) return {};
  if (errno != EEXIST) {  // no hard links there
    if (::renameat2(staging_.get(), name, home, name, RENAME_NOREPLACE) == 0 ||
        (errno != EEXIST && !exists_at(home, companion.home_name) &&
         ::renameat(staging_.get(), name, home, name) == 0)) {
      moved_.push_back(companion.home_name);
      return {};
    }
  }
  if (errno != EEXIST) return write_failure("put a companion at", fmt::format("{}/{}", link_.folder_path, name), errno);
  return fail(ErrorKind::infeasible,
              "'{}': a program has just made '{}/{}', which its companion is called; settle it "
              "afterwards",
              printable(entry_.path), printable(link_.folder_path), printable(companion.home_name));
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

Result<bool> is_at_home(const Place& home, const Place& data, const Companion& companion) {
  const auto there = beside(home, companion.home_name), here = beside(data, companion.name);
  if (!there || !here) return pass_on(!there ? there.error() : here.error());
  if (companion.kind == Companion::Kind::link) return link_target(*there) && link_target(*there) == link_target(*here);
  const Fd copy = open_file(there->folder.get(), there->name), original = open_file(here->folder.get(), here->name);
  return copy && original ? same_content(copy.get(), original.get(), {}) : Result<bool>(false);
}

Result<bool> is_at_home(const Place& home, const Place& data, const Companion& companion, ChangeWatch& watch,
                        std::vector<Fd>& held) {
  const auto there = beside(home, companion.home_name), here = beside(data, companion.name);
  if (!there || !here) return pass_on(!there ? there.error() : here.error());
  Fd copy = open_file(there->folder.get(), there->name), original = open_file(here->folder.get(), here->name);
  if (companion.kind == Companion::Kind::link || is_same_inode(copy, original)) {
    watch.add_linked(companion.name, *here);
  } else if (copy && original) {
    watch.set_copy(watch.add(companion.name, original), copy);
    held.push_back(std::move(copy));
    held.push_back(std::move(original));
  }
  return is_at_home(home, data, companion);
}

bool has_staged_companions(const Place& link, const JournalEntry& entry) {
  return exists_at(link.folder.get(), staging_name(entry));
}

Result<void> unstage_companions(const Place& link, const JournalEntry& entry, Placed placed) {
  const Fd staging = open_staging(link, entry);
  if (!staging) return {};
  const auto names = names_in(staging);
  if (!names) return pass_on(names.error());
  for (const std::string& name : *names) {
    if (placed == Placed::remove && is_one_file(link.folder.get(), name, staging.get()))
      if (auto gone = unplace(link, name); !gone) return gone;
    if (auto removed = remove_name(link, staging.get(), name); !removed) return removed;
  }
  if (::unlinkat(link.folder.get(), staging_name(entry).c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return system_failure("remove the directory", fmt::format("{}/{}", link.folder_path, staging_name(entry)));
}

}  // namespace iosig
