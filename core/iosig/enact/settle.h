// Settles a redirect after the run: brings data home, drops temporary data, clears what was never used.
//
// Every step leaves the data reachable: the link is only replaced by a copy that was read back and compared, in one
// rename, and the destination goes after that. So a crash anywhere is finished by settling once more:
//
//   link -> data                       as the run left it
//   link -> data, draft beside link    copying; the draft is thrown away and begun anew
//   file,   data                       renamed; the bytes are compared again, then the destination goes
//   file                               only the journal entry is left to remove
#pragma once

#include <map>
#include <string>

#include "iosig/enact/copy.h"
#include "iosig/enact/survey.h"

namespace iosig {

/// Which process holds a file below one of this user's folders open: path -> process id. Sees the processes that this
/// user may look into.
using OpenFiles = std::map<std::string, int, std::less<>>;
[[nodiscard]] OpenFiles open_redirected_files();

struct SettleOptions {
  bool keep_temp = false;     ///< bring temporary data home too
  bool drop_orphans = false;  ///< delete data to which no link leads, forget data that cannot be reached
  bool force = false;         ///< even while a process has the data open
  bool dry_run = false;       ///< say what would be done
  OpenFiles open_files = {};
  Progress progress = {};
};

struct Settlement {
  enum class Action { brought_home, dropped, cleared } action;
  std::string path;  ///< where the data are now, or were asked for
  std::uint64_t data_bytes = 0;
  std::string text;  ///< one sentence
};
[[nodiscard]] const char* name_of(Settlement::Action action);

/// Data that are declared neither temp nor persist count as persistent. Refusals are `infeasible`, change nothing, and
/// say how to resolve them: data to which no link leads, a path taken by other content, no room, a file in use, a full
/// job's folder, a mount point out of reach.
[[nodiscard]] Result<Settlement> settle(const JournalEntry& entry, const SettleOptions& options);

}  // namespace iosig
