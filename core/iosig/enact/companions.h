// Companions on their way home: the files that programs made beside the data (enact/destination.h) come home with
// them, all or none.
//
// They are copied into a staging directory beside the link, and get a second name at home before the data take the
// link's place, so no program ever finds the data at home without them:
//
//   .iosig-<id>.companions/a.db-wal   staged: a complete, verified copy
//   a.db-wal                          placed: the same file, by a second name
//   a.db                              then the data replace the link (enact/exchange.h)
//
// A placed file that is the staged one was put there by us, so that a killed run can be undone. The staging directory
// holds an empty file of its own name: where every user can rename, another directory of this user may have got that
// name, and its files are not ours to remove.
#pragma once

#include "iosig/enact/change_watch.h"
#include "iosig/enact/destination.h"

namespace iosig {

/// The way home for the companions of one redirect, into the directory of `link`.
class CompanionsHome {
 public:
  CompanionsHome(const Place& link, const JournalEntry& entry, const Destination& destination);

  /// Whether all can go home: `infeasible`, naming the first that cannot, because it is neither a file nor a link or
  /// its name at home is taken by other content, wanted by another companion, too long, or reserved for finalize.
  /// Changes nothing.
  [[nodiscard]] Result<void> check() const;
  /// Copies them into the staging directory, or gives them a second name there on `one_device`. `watch` sees their
  /// changes from before the copy.
  [[nodiscard]] Result<void> stage(bool one_device, ChangeWatch& watch, const CopyProgress& progress);
  /// Gives them their names at home.
  [[nodiscard]] Result<void> place();
  /// Takes back what was staged and placed; a placed file that a program has used since stays.
  [[nodiscard]] Result<void> undo();
  /// Removes the staging directory; the placed files stay.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> stage_one(const Companion& companion, bool one_device, ChangeWatch& watch,
                                       const CopyProgress& progress);
  [[nodiscard]] Result<void> place_one(const Companion& companion);
  [[nodiscard]] Result<void> check_name(const Companion& companion) const;

  const Place& link_;
  const JournalEntry& entry_;
  const Destination& from_;
  Fd staging_;
  std::vector<Fd> held_;            ///< copies, while their content may have to be compared
  std::vector<std::string> moved_;  ///< placed by renaming, where a file can have one name only
};

/// Whether the companion has the same content, or the target for home, in the directory of `home`, in a file that no
/// other user owns. If so `watch` sees its changes from before the comparison, with the copies in `held`.
[[nodiscard]] Result<bool> is_at_home(const Place& home, const Destination& from, const Companion& companion,
                                      ChangeWatch& watch, std::vector<Fd>& held);

/// Whether a file with the status `there`, in the directory of `home`, belongs to this user, to the owner of `data`, or
/// to the directory's.
[[nodiscard]] bool is_own(const struct stat& there, const Place& home, const struct stat& data);

/// Leftovers of a killed run.
enum class Placed { keep, remove };
[[nodiscard]] bool has_staged_companions(const Place& link, const JournalEntry& entry);
[[nodiscard]] Result<void> unstage_companions(const Place& link, const JournalEntry& entry, Placed placed);

}  // namespace iosig
