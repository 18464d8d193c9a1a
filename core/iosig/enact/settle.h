// Settles a redirect after the run: brings data home, deletes temporary data, removes what was never used.
//
// The data stay reachable at every step. A copy that was read back and compared replaces the link in one step that can
// be undone (enact/bring_home). Then the destination is deleted, and the journal entry last. Settling once more
// completes a run that crashed at any point.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "iosig/enact/copy.h"
#include "iosig/enact/open_files.h"
#include "iosig/enact/survey.h"

namespace iosig {

/// For data that this process has open itself (enact/move_on.h): what makes its descriptors follow the data home.
struct Followers {
  std::function<Result<void>(const Fd& copy)> get_ready;  ///< the copy is complete; nothing has changed yet
  /// The path leads home: now the descriptors do too. Calls `is_unchanged` immediately before, and refuses if the data
  /// have changed since they were copied.
  std::function<Result<void>(const std::function<bool()>& is_unchanged)> follow;
  /// The path will lead to the data again. False: the descriptors stay on the copy, so the path must lead to it, too.
  std::function<bool()> go_back;
};

struct SettleOptions {
  bool keep_temp = false;      ///< bring temporary data home too
  bool leave_resting = false;  ///< leave data that are declared `rest` where they are
  bool drop_orphans = false;   ///< **delete** data without a link, and forget data that cannot be reached
  bool force = false;          ///< settle data that a process has open; a change meanwhile is still refused
  bool dry_run = false;        ///< report what would be done
  CopyOptions copy = {};
  OpenFiles open_files = {};
  KnownLinks* links = nullptr;  ///< links already read, shared by many settlements
  const Followers* followers = nullptr;
};

struct Settlement {
  enum class Action { brought_home, sealed, dropped, cleared, rests } action;
  std::string path;  ///< where the data are now, or should have been
  std::uint64_t data_bytes = 0;
  std::vector<std::string> companions;      ///< names at home of the companions that were settled with the data
  std::vector<std::string> dangling_links;  ///< paths of other links to the data, now dangling
  std::string text;                         ///< one sentence
};
[[nodiscard]] const char* name_of(Settlement::Action action);

/// **Deletes** temporary data. Data declared neither temp nor persist count as persistent. Tamperproof and archived
/// data, even temporary ones, stay where they are and are sealed (enact/seal).
///
/// With `leave_resting`, data that may stay behind their link (`rest`) and are there stay; the space that they had
/// reserved beyond their size is released.
///
/// Refusals are `infeasible`, change nothing, and say how to resolve them: data without a link, a path taken by other
/// content, no space, a file in use, a job directory that is not empty, an unreachable mount point, a process that
/// may be about to create or use the link, a link to nothing without a journal entry. Other links to the data stay as
/// they are; the known ones are named.
///
/// The caller holds the entry's lock (enact/journal_directory.h). Undoes the traces of a killed run first. Journals the
/// current place of a link that a program renamed or that has no entry, so a later run can recover if this one is
/// killed.
[[nodiscard]] Result<Settlement> settle(const JournalEntry& entry, const SettleOptions& options);

}  // namespace iosig
