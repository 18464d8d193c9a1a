// Settles a redirect after the run: brings data home, drops temporary data, clears what was never used.
//
// Every step leaves the data reachable: the link is only replaced by a copy that was read back and compared, in one
// step that can be undone (enact/bring_home), and the destination goes after that, the journal entry last. So a crash
// anywhere is finished by settling once more.
#pragma once

#include <string>
#include <vector>

#include "iosig/enact/copy.h"
#include "iosig/enact/open_files.h"
#include "iosig/enact/survey.h"

namespace iosig {

struct SettleOptions {
  bool keep_temp = false;     ///< bring temporary data home too
  bool drop_orphans = false;  ///< delete data to which no link leads, forget data that cannot be reached
  bool force = false;         ///< even while a process has the data open; what it writes meanwhile still counts
  bool dry_run = false;       ///< say what would be done
  OpenFiles open_files = {};
  KnownLinks* links = nullptr;  ///< shared by many settlements
  CopyProgress progress = {};
};

struct Settlement {
  enum class Action { brought_home, sealed, dropped, cleared } action;
  std::string path;  ///< where the data are now, or were asked for
  std::uint64_t data_bytes = 0;
  std::vector<std::string> companions;      ///< names at home of the files that were treated alike
  std::vector<std::string> dangling_links;  ///< paths of other links to the data, which lead nowhere now
  std::string text;                         ///< one sentence
};
[[nodiscard]] const char* name_of(Settlement::Action action);

/// Data that are declared neither temp nor persist count as persistent. Tamperproof and archived data, even temporary
/// ones, stay where they are, sealed (enact/seal). Refusals are `infeasible`, change nothing, and
/// say how to resolve them: data to which no link leads, a path taken by other content, no room, a file in use, a full
/// job's directory, a mount point out of reach, a process that may be about to make or use the link, a link without a
/// journal entry that leads to nothing. Other links to the data stay as they are, and those that are known are named.
///
/// The caller holds the entry's lock (enact/journal_directory.h). First undoes what a killed run left. A link that a
/// program renamed, or that has no journal entry, is journalled as it is now, so that this run may be killed in turn.
[[nodiscard]] Result<Settlement> settle(const JournalEntry& entry, const SettleOptions& options);

}  // namespace iosig
