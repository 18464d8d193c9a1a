#include "iosig/enact/exchange.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/companions.h"
#include "iosig/enact/destination.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

enum class Stands { nothing, link, copy, other };

/// The link's place and its two temporary names, all in one directory.
class Swap {
 public:
  Swap(const Place& link, const JournalEntry& entry)
      : place_(link), entry_(entry), draft_(draft_name(entry)), displaced_(displaced_name(entry)) {}

  Result<void> put_draft(const Handover& handover) {
    held_ = &handover.copy;
    const bool linked = ::linkat(directory(), draft_.c_str(), directory(), displaced_.c_str(), 0) == 0;
    const bool unlike = linked && !taken_out_is(Stands::copy);  // FUSE may derive inode numbers from names
    if (linked && !unlike && exchange()) {
      const bool was_link = taken_out_is(Stands::link);
      if (was_link && handover.complete()) return remove(displaced_).and_then([&] { return remove(draft_); });
      if (auto undone = undo(); !undone) return undone;
      return was_link ? just_opened() : link_was_replaced();
    }
    const int failure = unlike ? EOPNOTSUPP : errno;
    if (lacks_a_way(failure) && link_target(place_) == entry_.destination) return put_plainly(handover);
    if (auto undone = undo(); !undone) return undone;
    if (failure == ENOENT || lacks_a_way(failure)) return link_was_replaced();
    return write_failure("put the data at", place_.path(), failure);
  }

  Result<void> take_link(const std::function<bool()>& complete) {
    if (::renameat(directory(), place_.name.c_str(), directory(), displaced_.c_str()) != 0) {
      if (errno == ENOENT) return {};
      return system_failure("remove", place_.path());
    }
    const bool was_link = taken_out_is(Stands::link);
    if (was_link && complete()) return remove(displaced_);
    if (auto undone = undo(); !undone) return undone;
    return was_link ? just_opened() : link_was_replaced();
  }

  /// Restores the state before the run, whichever row of the header's table it reached. "copy" is provably this
  /// redirect's: only such names are removed.
  ///
  ///   displaced  path     what happens
  ///   -          any      the exchange was not prepared: remove the draft
  ///   copy       any      not exchanged: remove displaced and the draft
  ///   other      -        put the program's file back at the path, then remove the draft
  ///   link       -        put the link back at the path, then remove the draft
  ///   link       copy     exchange them again, unless a program uses the copy: then the copy stays, and the link goes
  ///   other      copy     exchange them again; the program's file is back
  ///   link       other    the path has been taken by a program's file, which stays: remove displaced and the draft
  ///   link       link     the link is back already: remove displaced and the draft
  ///   other      any else two files of programs, or a program's file and a new link: both stay, which is an error
  Result<void> undo(Draft draft = Draft::remove) {
    const auto displaced = look(displaced_), at_path = look(place_.name);
    if (!displaced) return pass_on(displaced.error());
    if (!at_path) return pass_on(at_path.error());
    auto restored = Result<void>();
    if (*displaced == Stands::copy ||
        (*displaced == Stands::link && *at_path != Stands::nothing && *at_path != Stands::copy)) {
      restored = remove(displaced_);
    } else if (*displaced != Stands::nothing && *at_path == Stands::nothing) {
      restored = put_back();
    } else if (*displaced != Stands::nothing && *at_path == Stands::copy) {
      restored = exchange_back(*displaced);
    } else if (*displaced == Stands::other) {
      return remove(draft_).and_then([&]() -> Result<void> { return stays_displaced(); });
    }
    if (draft == Draft::keep && *displaced == Stands::nothing) return restored;
    return restored.and_then([&] { return remove(draft_); });
  }

  Result<bool> save_copy() {
    const auto displaced = look(displaced_), at_path = look(place_.name);
    if (!displaced) return pass_on(displaced.error());
    if (!at_path) return pass_on(at_path.error());
    if (!may_exist(draft_)) return false;
    bool saved = *at_path == Stands::copy && *displaced != Stands::other;
    if (*displaced == Stands::copy && *at_path == Stands::link) saved = exchange();
    if (*displaced == Stands::copy && *at_path == Stands::nothing)
      saved = ::linkat(directory(), draft_.c_str(), directory(), place_.name.c_str(), 0) == 0;
    if (!saved)
      return fail(ErrorKind::infeasible, "'{}': its data are gone; the part that had been copied is in '{}'", shown(),
                  printable(beside_path(draft_)));
    if (auto removed = remove(displaced_); !removed) return pass_on(removed.error());
    if (auto removed = remove(draft_); !removed) return pass_on(removed.error());
    return true;
  }

  /// Whether the run had finished except for removing its names: the link is gone for good.
  bool is_over() const {
    const auto at_path = look(place_.name);
    return !may_exist(displaced_) && at_path && *at_path != Stands::link;
  }
  Result<void> clear_up() const { return remove(draft_); }

  /// Whether a run was killed between the exchange and its end.
  bool is_exchanged() const {
    const auto displaced = look(displaced_), at_path = look(place_.name);
    return displaced && at_path && *displaced == Stands::link && *at_path == Stands::copy;
  }
  /// Whether a program has removed or renamed the copy since. Otherwise the path is never empty while a draft exists.
  bool was_removed() const {
    const auto displaced = look(displaced_), at_path = look(place_.name), draft = look(draft_);
    return displaced && at_path && draft && *displaced == Stands::link && *at_path == Stands::nothing &&
           *draft != Stands::nothing;
  }
  /// Removes the temporary names. The copy stays at the path, or where a program moved it.
  Result<void> keep_copy() const {
    return remove(displaced_).and_then([&] { return remove(draft_); });
  }

  /// Whether a temporary name exists. Usually costs two calls of stat.
  bool has_traces() const { return may_exist(draft_) || may_exist(displaced_); }

 private:
  int directory() const { return place_.directory.get(); }
  std::string shown() const { return printable(place_.path()); }

  /// Undoes the removal of the file at the path.
  Result<void> put_back() const {
    if (::renameat2(directory(), displaced_.c_str(), directory(), place_.name.c_str(), RENAME_NOREPLACE) == 0)
      return {};
    return stays_displaced();
  }

  /// Undoes an exchange. A program that found the copy at the path may have written to it: then it is that program's
  /// file and stays there, unless another program's file had been displaced.
  Result<void> exchange_back(Stands displaced) {
    const auto used = may_be_used(place_.name);
    if (!used) return pass_on(used.error());
    if (displaced == Stands::other || !*used) {
      if (!exchange() || !taken_out_is(Stands::copy)) return stays_displaced();
      // A program may have opened the copy just before the exchange. Then give the copy its place again.
      const auto used_now = may_be_used(displaced_);
      if (!used_now) return pass_on(used_now.error());
      if (*used_now && (displaced == Stands::other || !exchange() || !taken_out_is(Stands::link)))
        return remove(draft_).and_then([&]() -> Result<void> { return stays_displaced(); });
    }
    return remove(displaced_);
  }

  /// Replaces the link by the copy without hard links or RENAME_EXCHANGE (some network file systems, FUSE). Recreates
  /// the link if the exchange may not continue.
  Result<void> put_plainly(const Handover& handover) {
    if (auto removed = remove(displaced_); !removed) return removed;
    const bool alone = handover.begin();
    struct stat draft {
    }, there{};
    const bool is_known = ::fstatat(directory(), draft_.c_str(), &draft, AT_SYMLINK_NOFOLLOW) == 0;
    // Last: renameat() replaces whatever is there. A file that a program puts there in between would be lost.
    const bool is_link = link_target(place_) == entry_.destination;
    if (!alone || !is_link || ::renameat(directory(), draft_.c_str(), directory(), place_.name.c_str()) != 0) {
      const int failure = errno;
      if (auto undone = undo(); !undone) return undone;
      if (!alone) return just_opened();
      if (!is_link) return link_was_replaced();
      return write_failure("put the data at", place_.path(), failure);
    }
    if (handover.complete()) return {};
    const bool is_copy = is_known && ::fstatat(directory(), place_.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                         there.st_dev == draft.st_dev && there.st_ino == draft.st_ino;
    if (!is_copy) return just_opened();  // a program's file, which stays; the destination still has the data
    const auto used = may_be_used(place_.name);
    if (!used) return pass_on(used.error());
    if (*used) return just_opened();  // that program's file now
    if (::symlinkat(entry_.destination.c_str(), directory(), displaced_.c_str()) != 0)
      return system_failure("recreate the link at", place_.path());
    if (::renameat(directory(), displaced_.c_str(), directory(), place_.name.c_str()) != 0)
      return system_failure("put the link back at", place_.path());
    return just_opened();
  }

  /// False only if the name certainly does not exist.
  bool may_exist(const std::string& name) const {
    struct stat status {};
    return ::fstatat(directory(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
  }

  Result<Stands> look(const std::string& name) const {
    struct stat status {
    }, draft{};
    if (::fstatat(directory(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return Stands::nothing;
      return system_failure("inspect", beside_path(name));
    }
    if (S_ISLNK(status.st_mode)) {
      const auto at = beside(place_, name);
      return at && link_target(*at) == entry_.destination ? Stands::link : Stands::other;
    }
    if (::fstatat(directory(), draft_.c_str(), &draft, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return Stands::other;
      return system_failure("inspect", beside_path(draft_));
    }
    return draft.st_dev == status.st_dev && draft.st_ino == status.st_ino ? Stands::copy : Stands::other;
  }

  bool taken_out_is(Stands wanted) const {
    const auto displaced = look(displaced_);
    return displaced && *displaced == wanted;
  }

  Result<bool> may_be_used(const std::string& name) const {
    auto copy = beside(place_, name);
    return copy ? iosig::may_be_used(*copy, held_) : pass_on(copy.error());
  }

  bool exchange() const {
    return ::renameat2(directory(), displaced_.c_str(), directory(), place_.name.c_str(), RENAME_EXCHANGE) == 0;
  }

  static bool lacks_a_way(int failure) {
    return failure == EINVAL || failure == EPERM || failure == EOPNOTSUPP || failure == ENOSYS || failure == EMLINK;
  }

  Result<void> remove(const std::string& name) const {
    if (::unlinkat(directory(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno == EISDIR)
      return fail(ErrorKind::infeasible,
                  "'{}': '{}', a name that finalize needs, is a directory of another program; nothing was changed, the "
                  "data are still in '{}'; move the directory away, then settle again",
                  shown(), printable(beside_path(name)), printable(entry_.destination));
    return system_failure("remove", beside_path(name));
  }

  std::string beside_path(const std::string& name) const {
    return fmt::format("{}/{}", place_.directory_path == "/" ? "" : place_.directory_path, name);
  }

  tl::unexpected<Error> just_opened() const {
    return fail(ErrorKind::infeasible, "'{}': a program has just opened its data; settle it when the program has ended",
                shown());
  }

  tl::unexpected<Error> link_was_replaced() const {
    return fail(ErrorKind::infeasible, "'{}': a program has just replaced it; settle it when the program has ended",
                shown());
  }

  tl::unexpected<Error> stays_displaced() const {
    return fail(ErrorKind::infeasible, "'{}': what a program created there is now in '{}'; move it yourself", shown(),
                printable(beside_path(displaced_)));
  }

  const Place& place_;
  const JournalEntry& entry_;
  const std::string draft_, displaced_;
  const HeldCopy* held_ = nullptr;  ///< of this run; a killed run's copy is not open
};

}  // namespace

std::string draft_name(const JournalEntry& entry) { return fmt::format(".iosig-{}.draft", entry.id); }
std::string displaced_name(const JournalEntry& entry) { return fmt::format(".iosig-{}.aside", entry.id); }

Result<Place> beside(const Place& place, std::string name) {
  Fd directory(::fcntl(place.directory.get(), F_DUPFD_CLOEXEC, 0));
  if (!directory) return system_failure("keep open the directory", place.directory_path);
  return Place{std::move(directory), place.directory_path, std::move(name), place.device, place.inode};
}

Result<void> remove_at(const Place& place, int flags) {
  if (::unlinkat(place.directory.get(), place.name.c_str(), flags) == 0 || errno == ENOENT) return {};
  return system_failure("remove", place.path());
}

Result<void> put_in_place(const Place& link, const JournalEntry& entry, const Handover& handover) {
  return Swap(link, entry).put_draft(handover);
}

Result<void> remove_link(const Place& link, const JournalEntry& entry, const std::function<bool()>& complete) {
  return Swap(link, entry).take_link(complete);
}

Result<bool> may_be_used(const Place& place, const HeldCopy* held) {
  struct statx status {};
  constexpr unsigned wanted = STATX_MTIME | STATX_BTIME | STATX_NLINK;
  if (::statx(place.directory.get(), place.name.c_str(), AT_SYMLINK_NOFOLLOW, wanted, &status) != 0)
    return system_failure("inspect", place.path());
  Fd opened;  // not while this process has the copy open: that descriptor would count as another's
  if (held == nullptr) {
    opened = open_own_to_read(place.directory.get(), place.name);
    if (!opened) return system_failure("inspect", place.path());
  }
  const int tested = opened ? opened.get() : held->descriptor;
  if (status.stx_nlink > 2) return false;
  timespec now{};  // a program set a time in the future for the data; a new write does not get it
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  const auto time_of = [](const statx_timestamp& time) {
    return std::pair<std::int64_t, std::uint32_t>(time.tv_sec, time.tv_nsec);
  };
  const bool is_to_come = time_of(status.stx_mtime) > std::pair<std::int64_t, std::uint32_t>(now.tv_sec + 1, 0);
  return (status.stx_mask & wanted) != wanted ||
         (time_of(status.stx_mtime) > time_of(status.stx_btime) && !is_to_come) ||
         (tested >= 0 && is_open_elsewhere(tested));
}

bool was_cut_short(const JournalEntry& entry) {
  if (entry.kind != RedirectKind::link) return false;
  const auto place = locate(AT_FDCWD, entry.path);
  return place && (Swap(*place, entry).has_traces() || has_staged_companions(*place, entry));
}

bool was_removed_after_exchange(const JournalEntry& entry) {
  const auto place = locate(AT_FDCWD, entry.path);
  return place && Swap(*place, entry).was_removed();
}

namespace {

/// Whether a program has changed the file that a killed run put at the path, judged by content, mode and companions, as
/// times can be set back. False if the data changed after their copy was begun (a late writer): then the data are
/// newer.
bool was_changed_at_home(const Place& place, const JournalEntry& entry) {
  auto at = open_destination(entry);
  if (!at) return false;
  name_for_home(*at, place.name);
  const Fd home = open_own_to_read(place.directory.get(), place.name);
  const Fd data = open_own_to_read(at->data.directory.get(), at->data.name);
  struct statx copy {
  }, original{};
  if (!home || !data || is_same_inode(home, data) ||
      ::statx(home.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &copy) != 0 ||
      ::statx(data.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &original) != 0)
    return false;
  const auto time_of = [](const statx_timestamp& time) { return std::pair(time.tv_sec, time.tv_nsec); };
  if ((copy.stx_mask & STATX_BTIME) == 0 || time_of(original.stx_ctime) > time_of(copy.stx_btime)) return false;
  if ((copy.stx_mode & 07777) != (original.stx_mode & 07777)) return true;
  if (const auto same = same_content(home.get(), data.get(), {}); !same || !*same) return true;
  ChangeWatch watch(at->data.directory);
  std::vector<Fd> held;
  for (const Companion& companion : at->companions)
    if (const auto same = is_at_home(place, *at, companion, watch, held); same && !*same) return true;
  return false;
}

}  // namespace

Result<void> undo_killed_run(const JournalEntry& entry, Draft draft) {
  if (entry.kind != RedirectKind::link || !was_cut_short(entry)) return {};
  const auto place = locate(AT_FDCWD, entry.path);
  if (!place) return {};  // the directory is gone, with all files in it
  Swap swap(*place, entry);
  // Data are retired after the exchange, and restored before it is undone.
  if (const auto at = open_destination(entry); at && at->is_retired && swap.is_over())
    return swap.clear_up().and_then([&] { return unstage_companions(*place, entry, Placed::keep); });
  if (auto restored = restore_retired(entry); !restored) return restored;
  // Keeps both versions: the copy at the path, the data where they are. Settling then reports both.
  if (swap.was_removed() || (swap.is_exchanged() && was_changed_at_home(*place, entry)))
    return swap.keep_copy().and_then([&] { return unstage_companions(*place, entry, Placed::keep); });
  if (swap.has_traces())
    if (auto undone = swap.undo(draft); !undone) return undone;
  // A copy that a program has used keeps its companions, which the program may have used too.
  const bool leads_to_data = link_target(*place) == entry.destination;
  return unstage_companions(*place, entry, leads_to_data ? Placed::remove : Placed::keep);
}

Result<bool> save_copy_of_killed_run(const JournalEntry& entry) {
  if (entry.kind != RedirectKind::link) return false;
  const auto place = locate(AT_FDCWD, entry.path);
  if (!place) return false;
  auto saved = Swap(*place, entry).save_copy();
  if (saved && *saved)  // its companions were placed before the copy was complete
    if (auto cleared = unstage_companions(*place, entry, Placed::keep); !cleared) return pass_on(cleared.error());
  return saved;
}

}  // namespace iosig
