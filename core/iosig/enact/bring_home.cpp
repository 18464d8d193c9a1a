#include "iosig/enact/bring_home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "iosig/base/quota.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/companions.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/own_file.h"
#include "iosig/enact/reserve.h"

namespace iosig {
namespace {

using Answer = ChangeWatch::Answer;

Result<void> check_room(const std::string& shown, const std::string& directory, std::uint64_t needed_bytes) {
  auto free = free_bytes_at(directory);
  if (free) free = std::min(*free, quota_room_bytes(directory).value_or(*free));
  if (!free || *free >= needed_bytes) return {};  // if the file system does not report free space, the write will fail
  return fail(ErrorKind::infeasible, "{}: no room in '{}': {} needed, {} free, {} missing; nothing was changed", shown,
              printable(directory), about_bytes(static_cast<double>(needed_bytes)),
              about_bytes(static_cast<double>(*free)), about_bytes(static_cast<double>(needed_bytes - *free)));
}

/// Refuses a directory in which names can be made, but neither exchanged nor removed: finalize's own would stay.
Result<void> check_names(const std::string& shown, const Place& link) {
  struct statx status {};
  if (::statx(link.directory.get(), "", AT_EMPTY_PATH, 0, &status) != 0 ||
      (status.stx_attributes & (STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE)) == 0)
    return {};
  return fail(
      ErrorKind::infeasible,
      "{}: its link cannot be replaced, because '{}' is append-only or immutable; chattr -a -i it first; nothing "
      "was changed",
      shown, printable(link.directory_path));
}

std::string still_there(const JournalEntry& entry, const Error& why) {
  return fmt::format("'{}' is settled, but its data are also still in '{}': {}; run finalize again",
                     printable(entry.path), printable(entry.destination), why.message);
}

ChangeWatch watch_of(const Destination& from) {
  return from.directory ? ChangeWatch(from.data.directory, from.names) : ChangeWatch(from.data.directory);
}

/// Brings one redirect home. The steps share the opened files.
class WayHome {
 public:
  WayHome(const JournalEntry& entry, const Survey& found, const SettleOptions& options)
      : entry_(entry),
        found_(found),
        options_(options),
        from_(*found.destination),
        to_(*found.link),
        companions_(to_, entry, from_),
        watch_(watch_of(from_)) {}

  Result<std::string> go() {
    if (auto possible = check(); !possible) return pass_on(possible.error());
    if (options_.dry_run) return std::string(one_device_ ? "renamed" : "copied");
    auto put = make_copies().and_then([&] { return place_companions(); }).and_then([&] { return exchange(); });
    // The data are at home, and only names that are no longer needed could not be removed. **Undoing the companions now
    // would separate them from the data.** A later run continues as after a kill at this point.
    if (!put && is_home_) return pass_on(std::move(put.error()));
    if (!put) {
      watch_ = ChangeWatch(from_.data.directory);  // closes its files, which would count as in use
      if (auto undone = companions_.undo(); !undone) return pass_on(undone.error());
      return pass_on(refusal_ ? *refusal_ : put.error());
    }
    if (auto cleared = companions_.finish(); !cleared) return pass_on(cleared.error());
    if (copy_)
      if (auto moved = move_locks(content_, copy_, entry_.destination); !moved) return pass_on(moved.error());
    if (left_behind_) return pass_on(*left_behind_);
    if (!was_copied_) return std::string("renamed");
    return describe(way_, options_.copy.verify);
  }

 private:
  std::string shown() const { return fmt::format("'{}'", printable(entry_.path)); }
  std::string destination() const { return printable(entry_.destination); }

  Result<void> check() {
    struct stat data {};
    std::uint64_t needed_bytes = 0;
    for (const Companion& companion : from_.companions) needed_bytes += companion.allocated_bytes;
    if (found_.has_data) {
      if (::fstatat(from_.data.directory.get(), from_.data.name.c_str(), &data, AT_SYMLINK_NOFOLLOW) != 0)
        return system_failure("inspect", entry_.destination);
      if (!S_ISREG(data.st_mode))
        return fail(
            ErrorKind::infeasible,
            "{}: the program replaced its data in '{}' by something that is not a regular file; move it yourself",
            shown(), destination());
      needed_bytes += static_cast<std::uint64_t>(data.st_blocks) * 512;
    }
    one_device_ = from_.data.device == to_.device;
    if (options_.followers != nullptr && (one_device_ || !found_.has_data))
      return fail(ErrorKind::infeasible, "{}: its place is on the same file system", shown());
    if (auto possible = check_names(shown(), to_); !possible) return possible;
    if (auto possible = companions_.check(); !possible) return possible;
    return one_device_ ? Result<void>() : check_room(shown(), to_.directory_path, needed_bytes);
  }

  Result<void> make_copies() {
    was_copied_ = !one_device_;
    CopyOptions for_companions = options_.copy;
    for_companions.partial.reset();
    for_companions.begun = {};
    if (auto staged = companions_.stage(one_device_, watch_, for_companions); !staged)
      return fail(staged.error().kind, "{}: {}; nothing was changed, the data are still in '{}'", shown(),
                  staged.error().message, destination());
    if (!found_.has_data) return {};
    if (one_device_)
      if (auto watched = watch_.add_name(from_.data.name); !watched) return watched;
    Fd content = open_own_to_read(from_.data);
    if (!content && errno == ENOENT) return just_removed(from_.data.directory_path, from_.data.name);
    if (!content) return system_failure("read", entry_.destination);
    const auto draft = beside(to_, draft_name(entry_));
    if (!draft) return pass_on(draft.error());
    // A hard link, where possible (one device may be mounted twice).
    if (one_device_ && ::linkat(from_.data.directory.get(), from_.data.name.c_str(), draft->directory.get(),
                                draft->name.c_str(), 0) == 0) {
      content_ = std::move(content);
      return {};
    }
    was_copied_ = true;
    const std::size_t index = watch_.add(from_.data.name, std::move(content));
    content_ = Fd(::fcntl(watch_.file(index).get(), F_DUPFD_CLOEXEC, 0));
    if (options_.followers != nullptr && !watch_.sees_writes())
      return fail(ErrorKind::infeasible, "{}: writes to '{}' are not reported", shown(), destination());
    auto copy = copy_verified(watch_.file(index), *draft, options_.copy);
    if (!copy) {
      (void)remove_at(*draft);
      return fail(copy.error().kind, "{}: {}; nothing was changed, the data are still in '{}'", shown(),
                  copy.error().message, destination());
    }
    copy_ = std::move(copy->file);
    way_ = copy->way;
    watch_.set_copy(index, copy_);
    if (options_.followers == nullptr) return {};
    auto ready = options_.followers->get_ready(copy_);
    if (!ready) (void)remove_at(*draft);
    return ready;
  }

  Result<void> place_companions() {
    auto placed = companions_.place();
    if (const auto draft = beside(to_, draft_name(entry_)); !placed && draft) (void)remove_at(*draft);
    return placed;
  }

  Result<void> exchange() {
    if (!found_.has_data) return remove_link(to_, entry_, [&] { return complete(); });
    const HeldCopy copy{options_.followers == nullptr && copy_ ? copy_.get() : -1};
    return put_in_place(to_, entry_, {[&] { return may_go(/*thorough=*/false); }, [&] { return complete(); }, copy});
  }

  /// Steps 4 to 6. True: there is no way back.
  bool complete() {
    const Followers* followers = options_.followers;
    if (followers == nullptr) return is_home_ = retire_checked();
    const auto is_unchanged = [&] {
      const auto answer = watch_.look(/*thorough=*/false, /*may_be_open=*/true);
      return answer && *answer == Answer::unchanged && !watch_.was_written();
    };
    if (auto followed = followers->follow(is_unchanged); !followed) return refuse(followed.error());
    is_home_ = retire_checked();
    // Before the names are exchanged back: that keeps a copy at the path to which another thread has written by now.
    if (is_home_ || followers->go_back()) return is_home_;
    left_behind_ = Error{ErrorKind::infeasible, fmt::format("both {} and the data in '{}' are kept: {}", shown(),
                                                            destination(), refusal_ ? refusal_->message : "")};
    return is_home_ = true;
  }

  bool retire_checked() {
    if (found_.has_data && !has_come_home()) return false;
    if (!may_go(/*thorough=*/false)) return false;
    if (auto synced = sync_directory(to_); !synced) return refuse(synced.error());
    // The data are at home nevertheless; a second run compares both.
    if (auto retired = retire(from_, entry_); !retired) {
      left_behind_ = Error{retired.error().kind, still_there(entry_, retired.error())};
      return true;
    }
    if (may_go(/*thorough=*/true, from_.directory ? "" : retired_name(id_in(from_.data.name).value_or(entry_.id))))
      return true;
    if (auto restored = restore_retired(entry_); !restored) (void)refuse(restored.error());
    return false;
  }

  /// The followers may write to the copy already, so its content proves nothing then; events do.
  bool may_go(bool thorough, const std::string& renamed_to = {}) {
    const bool has_followers = options_.followers != nullptr;
    auto answer = watch_.look(thorough && !has_followers, options_.force, renamed_to);
    if (!answer) return refuse(answer.error());
    if (has_followers && *answer == Answer::unchanged && watch_.was_written()) answer = Answer::changed;
    if (*answer == Answer::unchanged) return true;
    return refuse(Error{ErrorKind::infeasible,
                        fmt::format("{}: a program has just {} its data; settle it when the program has ended", shown(),
                                    *answer == Answer::in_use ? "opened" : "changed")});
  }

  /// Whether the copy, or a file with the same content (FUSE may derive inode numbers from names), is at the path:
  /// other users who can write to that directory may have replaced it.
  bool has_come_home() {
    struct stat there {
    }, wanted{};
    const Fd& home = copy_ ? copy_ : content_;
    if (::fstatat(to_.directory.get(), to_.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        ::fstat(home.get(), &wanted) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino)
      return true;
    const Fd opened = open_own_to_read(to_);
    const auto same = opened ? same_content(opened.get(), content_.get(), options_.copy.progress) : Result<bool>(false);
    if (same && *same) return true;
    return refuse(Error{ErrorKind::infeasible,
                        fmt::format("{}: another user put another file in the place of the copy; the data are still in "
                                    "'{}'",
                                    shown(), destination())});
  }

  bool refuse(Error why) {
    if (!refusal_) refusal_ = std::move(why);
    return false;
  }

  const JournalEntry& entry_;
  const Survey& found_;
  const SettleOptions& options_;
  const Destination& from_;
  const Place& to_;
  CompanionsHome companions_;
  ChangeWatch watch_;
  Fd content_, copy_;
  std::optional<Error> refusal_;
  std::optional<Error> left_behind_;  ///< the data are at home, and still at the destination
  CopyWay way_ = CopyWay::read;
  bool one_device_ = false, was_copied_ = false, is_home_ = false;
};

/// Whether the file at `home` is the data (one file with two names), or has the same bytes and no other user's owner.
/// `watch` detects changes of the data since before the comparison, with the file in `held`.
Result<bool> is_complete_at_home(const Place& home, const Survey& found, ChangeWatch& watch, std::vector<Fd>& held,
                                 const CopyProgress& progress) {
  const Place& at = found.destination->data;
  const Fd& file = held.emplace_back(open_own_to_read(home));
  Fd data = open_own_to_read(at);
  if (!file || (found.has_data && !data)) return false;
  if (!found.has_data) return true;  // only companions
  if (is_same_inode(file, data)) {
    if (auto watched = watch.add_name(at.name); !watched) return pass_on(watched.error());
    return is_same_inode(file, open_own_to_read(at));
  }
  struct stat there {
  }, here{};
  if (::fstat(file.get(), &there) != 0 || ::fstat(data.get(), &here) != 0 || !is_own(there, home, here)) return false;
  const std::size_t index = watch.add(at.name, std::move(data));
  watch.set_copy(index, file);
  return same_content(file.get(), watch.file(index).get(), progress);
}

}  // namespace

Result<void> sync_directory(const Place& place) {
  const Fd directory(::openat(place.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A directory that cannot be opened for reading is not flushed.
  return directory ? sync_file(directory, place.directory_path) : Result<void>();
}

Result<std::string> bring_home(const JournalEntry& entry, const Survey& found, const SettleOptions& options) {
  return WayHome(entry, found, options).go();
}

Result<void> finish_settled(const JournalEntry& entry, const Survey& found, bool keeps_data) {
  if (found.destination) {
    if (!keeps_data)
      if (auto removed = remove_retired(entry); !removed)
        return fail(removed.error().kind, "{}", still_there(entry, removed.error()));
    const Destination& at = *found.destination;
    if (auto synced = sync_directory(at.directory ? *at.directory : at.data); !synced) return synced;
  }
  if (found.link)
    if (auto synced = sync_directory(*found.link); !synced) return synced;
  release(entry);
  return forget(entry);
}

/// Example: finalize was killed after it had put the copy at `a.db` and removed its temporary names, so `a.db` is a
/// regular file, and the data are still at the destination. Both have the same bytes (2), so the data are renamed to
/// their retired name (4), which the caller **deletes**.
///
/// 1. All companions are at home.
/// 2. The file at home has the bytes of the data: is_complete_at_home().
/// 3. Flush the files and the directory: bytes and names survive a power failure.
/// 4. Retire the data. Killed after it: the next run finds retired data and a file at home, and deletes the data.
/// 5. Look whether a program has changed the data or opened them since 1; if so, restore them. No path leads to retired
///    data, so no program opens them after this look.
Result<bool> retire_if_home(const Place& home, const JournalEntry& entry, const Survey& found,
                            const SettleOptions& options) {
  const Destination& from = *found.destination;
  ChangeWatch watch = watch_of(from);
  std::vector<Fd> held;
  for (const Companion& companion : from.companions)
    if (auto same = is_at_home(home, from, companion, watch, held); !same || !*same) return same;
  if (auto same = is_complete_at_home(home, found, watch, held, options.copy.progress); !same || !*same) return same;
  if (options.dry_run) return true;
  // A program has put the bytes there, perhaps just now: the comparison has read them from the page cache.
  const Fd& file_at_home = held.back();
  if (auto synced = sync_file(file_at_home, home.path()); !synced) return pass_on(synced.error());
  if (auto synced = sync_directory(home); !synced) return pass_on(synced.error());
  if (auto retired = retire(from, entry); !retired)
    return fail(retired.error().kind, "{}", still_there(entry, retired.error()));
  const auto answer = watch.look(
      /*thorough=*/true, options.force, from.directory ? "" : retired_name(id_in(from.data.name).value_or(entry.id)));
  if (answer && *answer == Answer::unchanged) return true;
  if (auto restored = restore_retired(entry); !restored) return pass_on(restored.error());
  if (!answer) return pass_on(answer.error());
  return fail(ErrorKind::infeasible, "'{}': a program has just {} its data; settle it when the program has ended",
              printable(entry.path), *answer == Answer::in_use ? "opened" : "changed");
}

}  // namespace iosig
