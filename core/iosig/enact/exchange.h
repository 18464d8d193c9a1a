// Takes a redirect's link out of its place, or puts the data there instead. Preserves any file that a program puts
// there meanwhile, and undoes a killed run.
//
// Each redirect has two names beside its link. The draft is our copy of the data; the displaced name is for the file
// taken out of the link's place. Before the exchange the copy gets both names, which identify it to later runs:
//
//   path    draft   displaced
//   link    -       -       as the run left it
//   link    copy    -       copying
//   link    copy    copy    about to exchange path and displaced
//   copy    copy    link    exchanged
//   -       copy    link    exchanged, but a program has removed or renamed the copy since
//   copy    copy    other   exchanged, but a program had replaced the link before: its file goes back
//   copy    -       -       done
//   -       -       link    the link is being removed
//   -       -       other   likewise, but a program had replaced the link before
#pragma once

#include <functional>
#include <string>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

[[nodiscard]] std::string draft_name(const JournalEntry& entry);
[[nodiscard]] std::string displaced_name(const JournalEntry& entry);

/// Returns the place `name` in the directory of `place`.
[[nodiscard]] Result<Place> beside(const Place& place, std::string name);

/// Removes the name at `place`. Succeeds if it does not exist.
Result<void> remove_at(const Place& place, int flags = 0);

/// Our copy, which this process has open. `descriptor`: the only one, by which others' can be tested; -1: a program
/// that this process helps to move on uses the copy, too, so they cannot.
struct HeldCopy {
  int descriptor = -1;
};

/// The caller's part in an exchange. Each function returns whether the exchange may continue; if not, everything is
/// undone.
struct Handover {
  std::function<bool()> begin;  ///< called before the link is removed, where one step cannot restore it
  /// Called when the path no longer leads to the data: the last check of them, and their retirement
  /// (enact/destination.h)
  std::function<bool()> complete;
  HeldCopy copy = {};
};

/// Moves the draft to `link`. `infeasible`: undone, or the path was not our link.
[[nodiscard]] Result<void> put_in_place(const Place& link, const JournalEntry& entry, const Handover& handover);

/// Removes the link. Keeps any other file there and fails as `infeasible`, as it does when `complete` refuses.
[[nodiscard]] Result<void> remove_link(const Place& link, const JournalEntry& entry,
                                       const std::function<bool()>& complete);

/// Whether a program has opened or written to our copy. Our copy has the times of the data, which are older than the
/// copy; a later modification time is a write. A file with a third name is the data themselves, so writes to it are not
/// lost: false. `held`: null if this process does not have the copy open.
[[nodiscard]] Result<bool> may_be_used(const Place& copy, const HeldCopy* held);

/// Whether a killed run left files under its temporary names beside `entry.path`.
[[nodiscard]] bool was_cut_short(const JournalEntry& entry);

/// Whether a program removed or renamed the copy that a killed run had put at `entry.path`. Then no link leads to the
/// data, and the path that the program removed must not come back.
[[nodiscard]] bool was_removed_after_exchange(const JournalEntry& entry);

/// Restores the file at `entry.path` from before a killed run, and removes the run's temporary names. Only for data
/// that still exist. Removes only files that are provably ours: a copy at the path that a program has opened or written
/// since stays. A program's file whose place is taken stays under the displaced name and is `infeasible`.
/// `Draft::keep`: the caller continues a copy that was not complete (enact/copy.h, PartialCopy).
enum class Draft { remove, keep };
[[nodiscard]] Result<void> undo_killed_run(const JournalEntry& entry, Draft draft = Draft::remove);

/// For data lost in a power failure: moves a copy that has both names, and is therefore complete, to the path. False:
/// there is none. An incomplete copy is `infeasible` and stays.
[[nodiscard]] Result<bool> save_copy_of_killed_run(const JournalEntry& entry);

}  // namespace iosig
