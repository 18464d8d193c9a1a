// Takes a redirect's link out of its place, or puts the data there instead. Nothing that a program puts there at the
// last moment is lost, and a run that was killed in the midst is undone.
//
// Two names beside the link belong to each redirect. The draft is our copy of the data; the displaced is what was taken
// out of the link's place. Before the copy goes there it gets both names, so whoever comes later knows it again:
//
//   path    draft   displaced
//   link    -       -       as the run left it
//   link    copy    -       copying
//   link    copy    copy    about to exchange path and displaced
//   copy    copy    link    exchanged
//   -       copy    link    exchanged, but a program has removed the copy since, or gave it another name
//   copy    copy    other   exchanged, but a program had been quicker: its file goes back
//   copy    -       -       done
//   -       -       link    the link is being removed
//   -       -       other   likewise, but a program had been quicker
#pragma once

#include <functional>
#include <string>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

[[nodiscard]] std::string draft_name(const JournalEntry& entry);
[[nodiscard]] std::string displaced_name(const JournalEntry& entry);

/// `name` in the directory of `place`.
[[nodiscard]] Result<Place> beside(const Place& place, std::string name);

/// Removes the name at `place`; one that is not there is fine.
Result<void> remove_at(const Place& place, int flags = 0);

/// The caller's part in an exchange. Each returns whether the exchange may go on; if not, all is changed back.
struct Handover {
  std::function<bool()> begin;     ///< asked before the link goes, where it cannot be put back in one step
  std::function<bool()> complete;  ///< asked when the path no longer leads to the data: the last look at them, and
                                   ///< their retirement (enact/destination.h)
};

/// Puts the file under the draft's name at `link`. `infeasible`: changed back, or something else than our link was
/// there.
[[nodiscard]] Result<void> put_in_place(const Place& link, const JournalEntry& entry, const Handover& handover);

/// Removes the link; what else stands there stays, and is `infeasible`, as is a refusal of `complete`.
[[nodiscard]] Result<void> remove_link(const Place& link, const JournalEntry& entry,
                                       const std::function<bool()>& complete);

/// Whether a program has opened the copy `name` of ours in `directory`, or written to it. A copy has the times of the
/// data, from before it was made; a file with a third name is the data themselves, to which a write is not lost.
/// `is_held`: this process has it open, so whether others have is not asked.
[[nodiscard]] Result<bool> may_be_used(const Place& copy, bool is_held);

/// Whether a killed run left files under its names beside `entry.path`.
[[nodiscard]] bool was_cut_short(const JournalEntry& entry);

/// Whether a program removed or renamed the copy that a killed run had put at `entry.path`. Then no link leads to the
/// data: what that program removed does not come back by itself.
[[nodiscard]] bool was_removed_after_exchange(const JournalEntry& entry);

/// Brings back what stood at `entry.path` before a run that was killed, and removes its names. Only what is provably
/// ours is removed: a copy at the path that a program has opened or written since stays there, and a program's file
/// that cannot go back, since its place is taken, is `infeasible` and stays. Only for data that are still there.
[[nodiscard]] Result<void> undo_killed_run(const JournalEntry& entry);

/// For data that are gone, with a machine that lost power: a copy that has both names was complete, and goes to the
/// path. False: there is none. A copy that was not finished is `infeasible` and stays.
[[nodiscard]] Result<bool> save_copy_of_killed_run(const JournalEntry& entry);

}  // namespace iosig
