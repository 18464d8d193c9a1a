#include "iosig/enact/settle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/bring_home.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/home.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/seal.h"

namespace iosig {
namespace {

using Action = Settlement::Action;

/// Describes the file at `place` so that a user can tell two versions apart: "1.2 MB, written 2026-11-23 10:15:02".
std::string size_and_time(const Place& place) {
  struct stat status {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return "unreadable";
  std::tm local{};
  char written[32];
  const bool has_time = ::localtime_r(&status.st_mtim.tv_sec, &local) != nullptr &&
                        std::strftime(written, sizeof written, "%Y-%m-%d %H:%M:%S", &local) > 0;
  return fmt::format("{}, written {}", about_bytes(static_cast<double>(status.st_size)),
                     has_time ? written : "long ago");
}

/// The settlement of one redirect. The steps share what survey() found.
class Settling {
 public:
  Settling(const JournalEntry& entry, const SettleOptions& options)
      : entry_(at_home(entry)),
        options_(options),
        recorded_(recorded_entry(entry.id)),
        found_(survey(entry_, options.links)) {}

  Result<Settlement> run() {
    if (rests()) return leave();
    // Step 1: refuse what cannot be settled now.
    if (auto ready = check_ready(); !ready) return pass_on(ready.error());
    // Step 2: undo or complete a killed run, and make one of two destinations.
    if (!options_.dry_run) {
      const auto saved = take_over();
      if (!saved) return pass_on(saved.error());
      if (*saved) return finish(Action::brought_home, "the copy was complete when its data went");
    }
    if (found_.destination && found_.destination->is_double)
      if (auto one = restore_retired(entry_); !one) return pass_on(one.error());
    // Step 3: bring home, drop, clear, keep, or refuse, by the state that the survey found.
    switch (found_.state) {
      case RedirectState::gone: return settle_gone();
      case RedirectState::empty: return settle_empty();
      case RedirectState::filled:
        return fail(ErrorKind::infeasible, "{}: the job's directory still holds files; it goes once they are removed",
                    shown());
      case RedirectState::linked: return is_temporary() ? drop("temporary data") : stays() ? keep() : bring_it_home();
      case RedirectState::orphan: return settle_orphan();
      case RedirectState::replaced: return is_temporary() ? drop("temporary data") : settle_replaced();
      case RedirectState::unreachable: return settle_unreachable();
    }
    return fail(ErrorKind::system, "{}: unknown state", shown());
  }

 private:
  /// Refuses data that a process has open, and a link of which nothing is known but the link.
  Result<void> check_ready() const {
    if (const auto user = data_in_use(); user != 0 && !options_.force)
      return fail(ErrorKind::infeasible,
                  "{}: process {} still has its data open; settle it when the program has ended, or use --force",
                  shown(), user);
    const bool is_unknown = entry_.pid == 0;
    if (is_unknown && found_.state == RedirectState::empty && !found_.cut_short)
      return fail(ErrorKind::infeasible,
                  "{}: this link leads to '{}', where no data are, and the journal does not know it: they were never "
                  "written, settled by another link, or deleted; the link stays, rm {} removes it",
                  shown(), destination(), shown());
    return {};
  }

  /// Whether nothing is to be done, except that a killed run must be undone.
  bool rests() const {
    return options_.leave_resting && entry_.signature.residence == Residence::rest &&
           found_.state == RedirectState::linked && !found_.cut_short && !is_temporary() && !stays();
  }

  Settlement leave() const {
    if (!options_.dry_run && data_in_use() == 0) release(entry_);
    Settlement settlement{Action::rests, found_.path, found_.data_bytes, {}, {}, {}};
    settlement.text = fmt::format("'{}': stays in '{}' ({}); --home brings it home", printable(found_.path),
                                  destination(), about_bytes(static_cast<double>(found_.data_bytes)));
    return settlement;
  }

  bool is_temporary() const { return entry_.signature.lifetime == Lifetime::temp && !options_.keep_temp && !stays(); }

  Result<Settlement> settle_gone() const {
    if (is_retired()) return clear("its data had come home");
    return maker_is_at_work() ? wait() : clear("nothing is left of it");
  }

  Result<Settlement> settle_empty() const {
    if (entry_.kind == RedirectKind::directory) return clear("the job's directory is empty");
    return maker_is_at_work() ? wait() : clear("nothing was written, or it is gone");
  }

  Result<Settlement> settle_orphan() const {
    if (is_temporary()) return drop("temporary data");
    if (options_.drop_orphans) return drop("data without a link");
    return fail(ErrorKind::infeasible,
                "{}: the link is gone, the data are kept in '{}'{}; move them where you want them, "
                "or settle the link under its new path, or delete them with --drop-orphans",
                shown(), destination(), with_companions());
  }

  Result<Settlement> settle_unreachable() const {
    if (found_.is_home_unreachable && (found_.has_data || found_.has_companions()))
      return is_temporary() && options_.drop_orphans ? drop("temporary data") : home_is_unreachable();
    if (options_.drop_orphans) return clear("its data cannot be reached; given up");
    return fail(
        ErrorKind::infeasible,
        "{}: its data cannot be reached: {}; settle it when '{}' is mounted again; only if that storage is lost "
        "for good, --drop-orphans forgets the data",
        shown(), found_.why, printable(entry_.mount_point));
  }

  /// Cleans up after a killed run and journals where the link is now. True: the data are gone, but a copy that the
  /// killed run had completed is at the path.
  Result<bool> take_over() {
    if (found_.state == RedirectState::unreachable && (!options_.drop_orphans || found_.is_home_unreachable))
      return false;
    // The link was moved after that run.
    if (const auto then = recorded_ ? at_home(*recorded_) : entry_; then.path != entry_.path)
      if (auto undone = undo_killed_run(then); !undone) return pass_on(undone.error());
    if (found_.cut_short) {
      if (!found_.has_data && !found_.has_companions()) {
        auto saved = save_copy_of_killed_run(entry_);
        if (struct stat copy{}; saved && *saved && ::lstat(entry_.path.c_str(), &copy) == 0)
          found_.data_bytes = static_cast<std::uint64_t>(copy.st_size);
        if (saved ? *saved : !options_.drop_orphans) return saved;
      }
      const bool continues = options_.copy.partial && found_.state == RedirectState::linked && found_.has_data &&
                             !is_temporary() && !stays();
      if (auto undone = undo_killed_run(entry_, continues ? Draft::keep : Draft::remove); !undone)
        return pass_on(undone.error());
      found_ = survey(entry_, options_.links);
    }
    if (!found_.link) return false;
    if (found_.destination && found_.destination->is_retired) {  // the link leads to the retired data
      if (auto restored = restore_retired(entry_); !restored) return pass_on(restored.error());
      found_ = survey(entry_, options_.links);
      if (!found_.link) return false;
    }
    entry_.path = found_.path;
    record_home(entry_, *found_.link);
    if (recorded_ && *recorded_ == entry_) return false;
    const auto written = rewrite_entry(entry_);
    if (!written && !may_stay_as_recorded(written.error())) return pass_on(written.error());
    return false;
  }

  /// Whether it is no matter that the entry cannot follow the link: the journal is full, and a later run looks for the
  /// link in the directory of the entry's path, where it is.
  bool may_stay_as_recorded(const Error& error) const {
    if (!recorded_ || (error.system_errno != ENOSPC && error.system_errno != EDQUOT)) return false;
    const auto then = locate(AT_FDCWD, at_home(*recorded_).path);
    return then && then->device == found_.link->device && then->inode == found_.link->inode;
  }

  /// Refuses: a link may lead to the data, so no option gives them up.
  Result<Settlement> home_is_unreachable() const {
    const Destination& at = *found_.destination;
    return fail(ErrorKind::infeasible,
                "{}: cannot tell whether a link leads to its data: {}; the data are kept in '{}'; settle it when that "
                "is mended, or, if you do not need the data: rm -r '{}', then run finalize again with "
                "--drop-orphans",
                shown(), found_.why, destination(), printable(at.directory ? at.directory->path() : at.data.path()));
  }

  /// Whether a process may be between writing its journal entry, its link and its data.
  bool maker_is_at_work() const { return !options_.force && may_be_at_work(entry_); }

  tl::unexpected<Error> wait() const {
    return fail(
        ErrorKind::infeasible,
        "{}: process {}, which redirected it, may be about to write it; settle it when the program has ended, or use "
        "--force",
        shown(), entry_.pid);
  }

  std::string shown() const { return fmt::format("'{}'", printable(entry_.path)); }
  std::string destination() const { return printable(entry_.destination); }

  int data_in_use() const {
    if (!found_.destination) return 0;
    const Destination& at = *found_.destination;
    return present_user_of(options_.open_files, at.directory ? at.directory->path() : at.data.path());
  }

  /// Whether an earlier run finished except for deleting the retired data.
  bool is_retired() const { return found_.destination && found_.destination->is_retired; }

  /// Names the companions in a message: without its journal, for example, a database is useless.
  std::string with_companions() const {
    if (!found_.has_companions()) return {};
    std::vector<std::string> names;
    for (const Companion& companion : found_.destination->companions)
      names.push_back(fmt::format("'{}'", printable(companion.name)));
    return fmt::format(
        " (with its companions there: {}; to bring all home, move away what is at the path, then: "
        "ln -s '{}' {} and run finalize again)",
        fmt::join(names, ", "), destination(), shown());
  }

  /// Whether the data stay where they are, because home lacks the properties that they were declared to need.
  bool stays() const {
    return entry_.kind == RedirectKind::link && found_.destination &&
           stays_sealed(found_.destination->data, entry_.signature);
  }

  Settlement done(Action action, std::string_view why) const {
    const char* verb = action == Action::brought_home ? "brought home"
                       : action == Action::sealed     ? "sealed"
                       : action == Action::dropped    ? "dropped"
                                                      : "cleared";
    Settlement settlement{action, found_.path, found_.data_bytes, {}, {}, {}};
    if (found_.destination && action != Action::sealed)
      for (const Companion& companion : found_.destination->companions)
        settlement.companions.push_back(companion.home_name);
    std::string with;
    for (const std::string& name : settlement.companions)
      with += fmt::format("{}'{}'", with.empty() ? " with " : ", ", printable(name));
    settlement.text =
        fmt::format("'{}'{}: {}{} ({}, {})", printable(found_.path), with, options_.dry_run ? "would be " : "", verb,
                    why, about_bytes(static_cast<double>(found_.data_bytes)));
    if (action != Action::sealed) settlement.dangling_links = other_links();
    if (settlement.dangling_links.empty()) return settlement;
    std::string links;
    for (const std::string& path : settlement.dangling_links)
      links += fmt::format("{}'{}'", links.empty() ? "" : ", ", printable(path));
    settlement.text +=
        fmt::format("; other links to the data {}: {}", options_.dry_run ? "would dangle" : "dangle now", links);
    if (action == Action::brought_home)
      settlement.text += fmt::format(" (ln -sfn '{}' LINK leads one to them)", printable(found_.path));
    return settlement;
  }

  /// Returns the other links to the data: those beside the link, and the one at the journal's path if the data went
  /// home by another link. The user may mean each as a copy or as a link, so they stay.
  std::vector<std::string> other_links() const {
    if (!found_.link) return {};
    KnownLinks own;
    std::vector<std::string> paths =
        links_beside(*found_.link, entry_, options_.links != nullptr ? *options_.links : own);
    const auto first = locate(AT_FDCWD, recorded_ ? recorded_->path : "");
    if (first && first->path() != found_.path && std::ranges::find(paths, first->path()) == paths.end() &&
        link_target(*first) == entry_.destination)
      paths.push_back(first->path());
    return paths;
  }

  Result<Settlement> finish(Action action, std::string_view why) const {
    if (auto finished = finish_settled(entry_, found_, action == Action::sealed); !finished)
      return pass_on(finished.error());
    return done(action, why);
  }

  /// Removes the link and the empty directory of a redirect without data and companions. A program that opened the link
  /// just before may still write behind it: then the directory is not empty, and the link is restored.
  Result<Settlement> clear(std::string_view why) const {
    if (options_.dry_run) return done(Action::cleared, why);
    const auto nothing_came = [&] {
      if (!found_.destination) return true;
      const Destination& at = *found_.destination;
      if (at.directory && !at.is_retired)
        return ::unlinkat(at.directory->directory.get(), at.directory->name.c_str(), AT_REMOVEDIR) == 0 ||
               errno == ENOENT;
      struct stat data {};
      return at.is_retired || ::fstatat(at.data.directory.get(), at.data.name.c_str(), &data, AT_SYMLINK_NOFOLLOW) != 0;
    };
    if (entry_.kind == RedirectKind::directory) {
      if (found_.destination)
        if (auto removed = remove_at(found_.destination->data, AT_REMOVEDIR); !removed) return pass_on(removed.error());
    } else if (found_.link) {
      if (auto removed = remove_link(*found_.link, entry_, nothing_came); !removed) return pass_on(removed.error());
    } else if (!nothing_came()) {
      return fail(ErrorKind::infeasible,
                  "{}: a program has just written into '{}'; settle it when the program has ended", shown(),
                  destination());
    }
    return finish(Action::cleared, why);
  }

  /// **Deletes** the data and their companions. Removes the link first, so that it never dangles.
  Result<Settlement> drop(std::string_view why) const {
    if (options_.dry_run) return done(Action::dropped, why);
    Result<void> retired;
    const auto complete = [&] {
      if (!options_.force && is_in_use(*found_.destination)) {
        retired = fail(ErrorKind::infeasible,
                       "{}: a program has just opened its data; settle it when the program has ended", shown());
      } else {
        retired =
            remove_manifest(found_.destination->data).and_then([&] { return retire(*found_.destination, entry_); });
      }
      return retired.has_value();
    };
    if (found_.link) {
      if (auto removed = remove_link(*found_.link, entry_, complete); !removed)
        return pass_on(retired ? removed.error() : retired.error());
    } else if (!complete()) {
      return pass_on(retired.error());
    }
    return finish(Action::dropped, why);
  }

  /// Seals the data. The link stays.
  Result<Settlement> keep() const {
    const auto sealed = seal(found_.destination->data, entry_, options_.dry_run, options_.copy.progress);
    if (!sealed) {
      // The journal does not keep sealed data, so an entry that only this run made for the link is removed.
      const bool is_from_link = entry_.pid == 0;
      if (is_from_link && !options_.dry_run) (void)forget(entry_);
      return pass_on(sealed.error());
    }
    std::string how = fmt::format("the data stay in '{}'", destination());
    if (!sealed->closed_by.empty()) how += fmt::format(", {}", fmt::join(sealed->closed_by, ", "));
    return options_.dry_run ? done(Action::sealed, how) : finish(Action::sealed, how);
  }

  /// Settles a redirect whose path has become a regular file. If it has the same bytes as the data, an earlier run was
  /// killed after its exchange.
  Result<Settlement> settle_replaced() const {
    const auto there = locate(AT_FDCWD, entry_.path);
    if (!there) return pass_on(there.error());
    if (!stays()) {
      const auto home = retire_if_home(*there, entry_, found_, options_);
      if (!home) return pass_on(home.error());
      if (*home) {
        constexpr const char* how = "the copy at its path is complete";
        if (options_.dry_run) return done(Action::brought_home, how);
        if (auto synced = sync_directory(*there); !synced) return pass_on(synced.error());
        return finish(Action::brought_home, how);
      }
    }
    if (!found_.has_data)
      return fail(
          ErrorKind::infeasible,
          "{}: its companions are still in '{}', and both are kept; move or remove them, then run finalize again",
          shown(), printable(found_.destination->data.directory_path));
    return fail(ErrorKind::infeasible,
                "{}: another file is there now ({}), and both it and the redirected data ({}) are kept; to keep that "
                "file: rm '{}'; to keep the redirected data: mv '{}' {}; then run finalize again{}",
                shown(), size_and_time(*there), size_and_time(found_.destination->data), destination(), destination(),
                shown(), with_companions());
  }

  Result<Settlement> bring_it_home() const {
    const auto how = bring_home(entry_, found_, options_);
    if (!how) return pass_on(how.error());
    return options_.dry_run ? done(Action::brought_home, *how) : finish(Action::brought_home, *how);
  }

  JournalEntry entry_;  ///< its path follows a renamed link
  const SettleOptions& options_;
  const std::optional<JournalEntry> recorded_;  ///< the journal's entry before this run
  Survey found_;
};

}  // namespace

const char* name_of(Settlement::Action action) {
  switch (action) {
    case Action::brought_home: return "brought_home";
    case Action::sealed: return "sealed";
    case Action::dropped: return "dropped";
    case Action::cleared: return "cleared";
    case Action::rests: return "rests";
  }
  return "";
}

Result<Settlement> settle(const JournalEntry& entry, const SettleOptions& options) {
  return Settling(entry, options).run();
}

}  // namespace iosig
