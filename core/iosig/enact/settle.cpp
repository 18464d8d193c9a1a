#include "iosig/enact/settle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/seal.h"
#include "iosig/enact/user_folder.h"

namespace iosig {
namespace {

using Action = Settlement::Action;

/// Makes the names in the folder of `place` last.
Result<void> sync_folder(const Place& place) {
  const Fd folder(::openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) == 0 || errno == EINVAL || errno == EROFS) return {};  // may not be readable
  return system_failure("sync the folder", place.folder_path);
}

Fd open_to_read(const Place& place) {
  return Fd(::openat(place.folder.get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

/// One redirect on its way; the steps share what was found.
class Settling {
 public:
  Settling(const JournalEntry& entry, const SettleOptions& options)
      : entry_(entry), options_(options), found_(survey(entry, options.links)) {}

  Result<Settlement> run() {
    if (const auto user = data_in_use(); user != 0 && !options_.force)
      return fail(ErrorKind::infeasible,
                  "{}: process {} still has its data open; settle it when that has ended, or use --force", shown(),
                  user);
    if (!options_.dry_run) {
      const auto saved = take_over();
      if (!saved) return pass_on(saved.error());
      if (*saved) return finish(Action::brought_home, "the copy was complete when its data went");
    }
    const bool temporary = entry_.signature.lifetime == Lifetime::temp && !options_.keep_temp && !stays();
    switch (found_.state) {
      case RedirectState::gone: return maker_is_at_work() ? wait() : clear("nothing is left of it");
      case RedirectState::empty:
        if (entry_.kind == RedirectKind::folder) return clear("the job's folder is empty");
        return maker_is_at_work() ? wait() : clear("it was never written, or what was written is gone");
      case RedirectState::filled:
        return fail(ErrorKind::infeasible, "{}: the job's folder still holds files; it goes once they are removed",
                    shown());
      case RedirectState::linked: return temporary ? drop("temporary data") : stays() ? keep() : bring_home();
      case RedirectState::orphan:
        if (temporary || options_.drop_orphans) return drop(temporary ? "temporary data" : "data without a link");
        return fail(ErrorKind::infeasible,
                    "{}: the link is gone, the data are kept in '{}'; move them where you want them, "
                    "or settle the link under its new path, or delete them with --drop-orphans",
                    shown(), destination());
      case RedirectState::replaced: return temporary ? drop("temporary data") : settle_replaced();
      case RedirectState::unreachable:
        if (options_.drop_orphans) return clear("its data cannot be reached and are given up");
        return fail(ErrorKind::infeasible,
                    "{}: its data cannot be reached: {}; settle it when '{}' is mounted, or give it up with "
                    "--drop-orphans",
                    shown(), found_.why, printable(entry_.mount_point));
    }
    return fail(ErrorKind::system, "{}: unknown state", shown());
  }

 private:
  /// Clears up after a run that was killed, and lets the journal tell where the link is now. True: the data are gone,
  /// but a copy that the run had completed stands at the path.
  Result<bool> take_over() {
    if (found_.state == RedirectState::unreachable && !options_.drop_orphans) return false;
    const auto recorded = recorded_entry(entry_.id);
    if (recorded && recorded->path != entry_.path)  // the link was moved after the kill
      if (auto undone = undo_killed_run(*recorded); !undone) return pass_on(undone.error());
    if (found_.cut_short) {
      if (!found_.has_data) {
        auto saved = save_copy_of_killed_run(entry_);
        if (struct stat copy{}; saved && *saved && ::lstat(entry_.path.c_str(), &copy) == 0)
          found_.data_bytes = static_cast<std::uint64_t>(copy.st_size);
        if (saved ? *saved : !options_.drop_orphans) return saved;
      }
      if (auto undone = undo_killed_run(entry_); !undone) return pass_on(undone.error());
      found_ = survey(entry_, options_.links);
    }
    if (!found_.link) return false;
    entry_.path = found_.path;
    if (recorded && *recorded == entry_) return false;
    return record_anew(entry_).map([] { return false; });
  }

  /// Whether a process may be between its journal entry, its link and its data.
  bool maker_is_at_work() const { return !options_.force && maker_of(entry_) == Life::alive; }

  tl::unexpected<Error> wait() const {
    return fail(ErrorKind::infeasible,
                "{}: process {}, which redirected it, may be about to write it; settle it when that has ended, or use "
                "--force",
                shown(), entry_.pid);
  }

  std::string shown() const { return fmt::format("'{}'", printable(entry_.path)); }
  std::string destination() const { return printable(entry_.destination); }

  int data_in_use() const {
    if (!found_.destination) return 0;
    const auto user = options_.open_files.find(found_.destination->path());
    return user == options_.open_files.end() ? 0 : user->second;
  }

  /// Whether the data belong where they are: home lacks what they were declared to need.
  bool stays() const {
    return entry_.kind == RedirectKind::link && found_.destination &&
           stays_sealed(*found_.destination, entry_.signature);
  }

  Settlement done(Action action, std::string_view why) const {
    const char* verb = action == Action::brought_home ? "brought home"
                       : action == Action::sealed     ? "sealed"
                       : action == Action::dropped    ? "dropped"
                                                      : "cleared";
    return {action, found_.path, found_.data_bytes,
            fmt::format("'{}': {}{} ({}, {})", printable(found_.path), options_.dry_run ? "would be " : "", verb, why,
                        about_bytes(static_cast<double>(found_.data_bytes)))};
  }

  /// The last step of all: what was removed stays removed, then the entry goes.
  Result<Settlement> finish(Action action, std::string_view why) const {
    for (const std::optional<Place>* place : {&found_.link, &found_.destination})
      if (*place)
        if (auto synced = sync_folder(**place); !synced) return pass_on(synced.error());
    release(entry_);
    if (auto forgotten = forget(entry_); !forgotten) return pass_on(forgotten.error());
    return done(action, why);
  }

  /// No data are there: removes the link (or the empty folder).
  Result<Settlement> clear(std::string_view why) const {
    if (options_.dry_run) return done(Action::cleared, why);
    if (entry_.kind == RedirectKind::folder && found_.destination)
      if (auto removed = remove_at(*found_.destination, AT_REMOVEDIR); !removed) return pass_on(removed.error());
    if (found_.link) {
      if (auto removed = remove_link(*found_.link, entry_); !removed) return pass_on(removed.error());
      struct stat data {};
      // A program that opened the link just before it went is writing behind it: the link goes back.
      if (found_.destination && ::fstatat(found_.destination->folder.get(), found_.destination->name.c_str(), &data,
                                          AT_SYMLINK_NOFOLLOW) == 0) {
        (void)::symlinkat(entry_.destination.c_str(), found_.link->folder.get(), found_.link->name.c_str());
        return fail(ErrorKind::infeasible, "{}: a program has just begun to write it; settle it afterwards", shown());
      }
    }
    return finish(Action::cleared, why);
  }

  Result<Settlement> drop(std::string_view why) const {
    if (options_.dry_run) return done(Action::dropped, why);
    // The link first: a path never leads to nothing.
    if (found_.link)
      if (auto removed = remove_link(*found_.link, entry_); !removed) return pass_on(removed.error());
    if (auto removed = remove_manifest(*found_.destination); !removed) return pass_on(removed.error());
    if (auto removed = remove_at(*found_.destination); !removed) return pass_on(removed.error());
    return finish(Action::dropped, why);
  }

  /// The link goes on leading to the data.
  Result<Settlement> keep() const {
    const auto sealed = seal(*found_.destination, entry_, options_.dry_run, options_.progress);
    if (!sealed) {
      // Sealed data are not in the journal; an entry that only this run made for the link must not stay behind.
      const bool is_from_link = entry_.pid == 0;
      if (is_from_link && !options_.dry_run) (void)forget(entry_);
      return pass_on(sealed.error());
    }
    std::string how = fmt::format("the data stay in '{}'", destination());
    if (!sealed->closed_by.empty()) how += fmt::format(", {}", fmt::join(sealed->closed_by, ", "));
    return options_.dry_run ? done(Action::sealed, how) : finish(Action::sealed, how);
  }

  /// Something else stands at the path. If it has the same bytes, an earlier run was killed after its rename.
  Result<Settlement> settle_replaced() const {
    const auto there = locate(AT_FDCWD, entry_.path);
    if (!there) return pass_on(there.error());
    const Fd file = open_to_read(*there), data = open_to_read(*found_.destination);
    if (file && data && !stays()) {
      const auto same = same_content(file.get(), data.get(), options_.progress);
      if (!same) return pass_on(same.error());
      if (*same) {
        constexpr const char* how = "the copy at its path is complete";
        return options_.dry_run ? done(Action::brought_home, how) : leave_destination(*there, how);
      }
    }
    return fail(ErrorKind::infeasible,
                "{}: another file stands there now, and both are kept; to keep that file: rm '{}'; to keep the "
                "redirected data: mv '{}' {}; then run finalize again",
                shown(), destination(), destination(), shown());
  }

  Result<Settlement> bring_home() const {
    const Place& from = *found_.destination;
    const Place& to = *found_.link;
    struct stat data {};
    if (::fstatat(from.folder.get(), from.name.c_str(), &data, AT_SYMLINK_NOFOLLOW) != 0)
      return system_failure("inspect", entry_.destination);
    if (!S_ISREG(data.st_mode))
      return fail(ErrorKind::infeasible, "{}: what was made in '{}' is no regular file; move it yourself", shown(),
                  destination());
    const auto draft = beside(to, draft_name(entry_));
    if (!draft) return pass_on(draft.error());
    const bool one_device = data.st_dev == to.device;
    if (!one_device)
      if (auto room = check_room(static_cast<std::uint64_t>(data.st_blocks) * 512); !room) return pass_on(room.error());
    const char* how = one_device ? "renamed" : "copied and verified";
    if (options_.dry_run) return done(Action::brought_home, one_device ? "renamed" : "copied");
    const Fd content = open_to_read(from);
    if (!content) return system_failure("read", entry_.destination);
    Fd copy;
    // A second name for the same file, where that is possible (one device may be mounted twice).
    if (!one_device ||
        ::linkat(from.folder.get(), from.name.c_str(), draft->folder.get(), draft->name.c_str(), 0) != 0) {
      how = "copied and verified";
      auto made = make_draft(*draft, content, data);
      if (!made) {
        (void)remove_at(*draft);
        return fail(made.error().kind, "{}: {}; nothing was changed, the data are still in '{}'", shown(),
                    made.error().message, destination());
      }
      copy = *std::move(made);
    }
    const auto is_ours_alone = [&] { return options_.force || !is_open_elsewhere(content); };
    if (auto put = put_in_place(to, entry_, is_ours_alone); !put) return pass_on(put.error());
    const auto home = has_come_home(to, copy ? copy : content, content);
    if (!home) return pass_on(home.error());
    if (!*home)  // others who can write that folder may have been quicker
      return fail(ErrorKind::infeasible,
                  "{}: somebody put another file in the place of the copy; the data are still in '{}'", shown(),
                  destination());
    return leave_destination(to, how);
  }

  /// The data are at home, in the folder of `home`.
  Result<Settlement> leave_destination(const Place& home, std::string_view how) const {
    auto left = sync_folder(home).and_then([&] { return remove_at(*found_.destination); });
    if (!left)
      return fail(left.error().kind, "{} is complete, but its data are also still in '{}': {}; run finalize again",
                  shown(), destination(), left.error().message);
    return finish(Action::brought_home, how);
  }

  Result<void> check_room(std::uint64_t needed_bytes) const {
    const auto free = free_bytes_at(found_.link->folder_path);
    if (!free || *free >= needed_bytes) return {};  // who cannot be asked will refuse the write
    return fail(ErrorKind::infeasible, "{}: no room in '{}': {} needed, {} free, {} missing; nothing was changed",
                shown(), printable(found_.link->folder_path), about_bytes(static_cast<double>(needed_bytes)),
                about_bytes(static_cast<double>(*free)), about_bytes(static_cast<double>(needed_bytes - *free)));
  }

  /// Whether `file` is what stands at `place`, or holds the same bytes: FUSE may number files by their names.
  Result<bool> has_come_home(const Place& place, const Fd& file, const Fd& data) const {
    struct stat there {
    }, wanted{};
    if (::fstatat(place.folder.get(), place.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        ::fstat(file.get(), &wanted) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino)
      return true;
    const Fd opened = open_to_read(place);
    return opened ? same_content(opened.get(), data.get(), options_.progress) : Result<bool>(false);
  }

  /// Copies into `draft`, compares, and returns the copy.
  Result<Fd> make_draft(const Place& draft, const Fd& data, const struct stat& before) const {
    Fd copy(::openat(draft.folder.get(), draft.name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!copy) return write_failure("create a file in", draft.folder_path, errno);
    if (auto copied = copy_content(data.get(), copy.get(), options_.progress); !copied) return pass_on(copied.error());
    copy_attributes(data.get(), copy.get());
    if (::fsync(copy.get()) != 0) return write_failure("sync", draft.path(), errno);
    (void)::posix_fadvise(copy.get(), 0, 0, POSIX_FADV_DONTNEED);  // compare what the device has, not our own pages
    const auto same = same_content(data.get(), copy.get(), options_.progress);
    if (!same) return pass_on(same.error());
    struct stat after {};
    if (::fstat(data.get(), &after) != 0) return system_failure("inspect", entry_.destination);
    if (!*same || after.st_size != before.st_size || after.st_mtim.tv_sec != before.st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
      return fail(ErrorKind::infeasible, "the data changed while they were copied: a program still writes them");
    return copy;
  }

  JournalEntry entry_;  ///< its path follows the link
  const SettleOptions& options_;
  Survey found_;
};

}  // namespace

const char* name_of(Settlement::Action action) {
  switch (action) {
    case Action::brought_home: return "brought_home";
    case Action::sealed: return "sealed";
    case Action::dropped: return "dropped";
    case Action::cleared: return "cleared";
  }
  return "";
}

bool is_open_elsewhere(const Fd& file) {
  // The kernel grants a write lease only on a file that nobody else has open or mapped.
  const bool refused = ::fcntl(file.get(), F_SETLEASE, F_WRLCK) != 0 && errno == EAGAIN;
  if (!refused) (void)::fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return refused;
}

OpenFiles open_redirected_files() {
  const std::string ours = fmt::format("/{}/", user_folder_name());
  OpenFiles open;
  std::error_code ignored;  // processes end while we look, and others' are closed to us
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator process("/proc", ignored); process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{}) continue;
    const auto note = [&](const std::filesystem::path& link) {
      const std::string target = std::filesystem::read_symlink(link, ignored);
      if (target.find(ours) != std::string::npos) open.emplace(target, pid);
    };
    note(process->path() / "cwd");
    for (std::filesystem::directory_iterator fd(process->path() / "fd", ignored); fd != end; fd.increment(ignored))
      note(fd->path());
  }
  return open;
}

Result<Settlement> settle(const JournalEntry& entry, const SettleOptions& options) {
  return Settling(entry, options).run();
}

}  // namespace iosig
