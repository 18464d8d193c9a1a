// Brings redirected data and their companions home, and loses nothing that a program writes meanwhile.
//
//   1. copies of all are made beside the link, synced, read back and compared (on one file system: second names)
//   2. the companions get their names at home (enact/companions.h)
//   3. copy and link change places in one step (enact/exchange.h); from here on the path leads home
//   4. the data are looked at again: a program that opened them before step 3 may have written since
//   5. what came home is synced, and the data are retired: no path leads to them (enact/destination.h)
//   6. they are looked at once more, for a program that had resolved their path before step 5
//
// A change, or a program that has them open, undoes all of it. The caller removes the retired data afterwards.
#pragma once

#include <string>

#include "iosig/enact/settle.h"

namespace iosig {

/// Returns how: "renamed" or "copied and verified". Refusals are `infeasible` and change nothing; the message says why.
[[nodiscard]] Result<std::string> bring_home(const JournalEntry& entry, const Survey& found,
                                             const SettleOptions& options);

/// For data whose complete copy stands at `home`, the entry's path: whether all is there, the companions too. If so the
/// data are retired as above, unless `options.dry_run`.
[[nodiscard]] Result<bool> retire_if_home(const Place& home, const JournalEntry& entry, const Survey& found,
                                          const SettleOptions& options);

/// Makes the names in the directory of `place` last.
[[nodiscard]] Result<void> sync_directory(const Place& place);

}  // namespace iosig
