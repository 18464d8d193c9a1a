// Brings companions home: the files that programs made beside the data (enact/destination.h) come home with the data,
// all or none.
//
// They are copied into a staging directory beside the link, and get a second name at home before the data replace the
// link. Programs therefore never find the data at home without them:
//
//   .iosig-<id>.companions/a.db-wal   staged: a complete, verified copy
//   a.db-wal                          placed: the same file, by a second name
//   a.db                              then the data replace the link (enact/exchange.h)
//
// A placed file with the inode of the staged one was placed by iosig, so a killed run can be undone. The staging
// directory contains an empty file of the directory's own name as a mark: where every user may rename, another
// directory of this user may have got the staging directory's name, and its files must not be removed.
#pragma once

#include "iosig/enact/change_watch.h"
#include "iosig/enact/destination.h"

namespace iosig {

/// Moves the companions of one redirect into the directory of `link`.
class CompanionsHome {
 public:
  CompanionsHome(const Place& link, const JournalEntry& entry, const Destination& destination);

  /// Checks that all companions can come home. Changes nothing. `infeasible`, with the first that cannot: it is neither
  /// a file nor a link, or its name at home is taken by other content, wanted by another companion, too long, or
  /// reserved for finalize.
  [[nodiscard]] Result<void> check() const;
  /// Copies them into the staging directory, or links them there if `one_device`. `watch` detects their changes since
  /// before the copy.
  [[nodiscard]] Result<void> stage(bool one_device, ChangeWatch& watch, const CopyOptions& options);
  /// Links them to their names at home.
  [[nodiscard]] Result<void> place();
  /// Removes the staged and placed files. Keeps a placed file that a program has used since.
  [[nodiscard]] Result<void> undo();
  /// Removes the staging directory. The placed files stay.
  [[nodiscard]] Result<void> finish();

 private:
  [[nodiscard]] Result<void> stage_one(const Companion& companion, bool one_device, ChangeWatch& watch,
                                       const CopyOptions& options);
  [[nodiscard]] Result<void> stage_link(const Companion& companion, ChangeWatch& watch);
  [[nodiscard]] Result<void> stage_copy(const Companion& companion, ChangeWatch& watch, const CopyOptions& options);
  [[nodiscard]] Result<void> place_one(const Companion& companion);
  [[nodiscard]] Result<void> check_name(const Companion& companion) const;

  const Place& link_;
  const JournalEntry& entry_;
  const Destination& from_;
  Fd staging_;
  std::vector<Fd> held_;                  ///< copies, held open while their content may have to be compared
  std::vector<const Companion*> staged_;  ///< those of the destination that were not at home already
  std::vector<std::string> moved_;        ///< placed by rename, where the file system has no hard links
};

/// Whether the directory of `home` has a file with the companion's content, or a link with its target at home, that no
/// other user owns. If so, `watch` detects its changes since before the comparison, with the copies in `held`.
[[nodiscard]] Result<bool> is_at_home(const Place& home, const Destination& from, const Companion& companion,
                                      ChangeWatch& watch, std::vector<Fd>& held);

/// Whether a file with the status `there`, in the directory of `home`, belongs to this user, the owner of `data`, or
/// the owner of the directory.
[[nodiscard]] bool is_own(const struct stat& there, const Place& home, const struct stat& data);

/// Finds and removes the staging directory of a killed run. `placed`: what happens to the placed files; `remove` keeps
/// those that a program has used.
enum class Placed { keep, remove };
[[nodiscard]] bool has_staged_companions(const Place& link, const JournalEntry& entry);
[[nodiscard]] Result<void> unstage_companions(const Place& link, const JournalEntry& entry, Placed placed);

}  // namespace iosig
