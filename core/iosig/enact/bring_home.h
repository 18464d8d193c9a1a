// Brings redirected data and their companions home, and loses no bytes that a program writes meanwhile.
//
//   1. creates copies of all beside the link, verifies them (enact/copy) and flushes them (on one file system: hard
//      links)
//   2. gives the companions their names at home (enact/companions.h)
//   3. exchanges copy and link atomically (enact/exchange.h); from here on the path leads home
//   4. checks the data again: a program that opened them before step 3 may have written since
//   5. flushes what came home, and retires the data: no path leads to them any more (enact/destination.h)
//   6. checks them once more, for a program that had resolved their path before step 5
//
// If this process has the data open itself, its descriptors are exchanged after step 3 (`SettleOptions::followers`), so
// steps 4 and 6 also find what other threads wrote in between.
//
// If a file has changed, or a program has it open, everything is undone. The caller deletes the retired data
// afterwards.
#pragma once

#include <string>

#include "iosig/enact/settle.h"

namespace iosig {

/// Brings the data home and returns how: "renamed" or "copied and verified". Refusals are `infeasible`, change nothing,
/// and give the reason.
[[nodiscard]] Result<std::string> bring_home(const JournalEntry& entry, const Survey& found,
                                             const SettleOptions& options);

/// The last steps of a settlement: **deletes** the retired data, unless `keeps_data`, flushes the directories of data
/// and link, drops the reservation, removes the journal entry. If it is killed, the next run completes it.
[[nodiscard]] Result<void> finish_settled(const JournalEntry& entry, const Survey& found, bool keeps_data);

/// Checks whether a complete copy of the data and of their companions is at `home`, the entry's path. If so, retires
/// the data as above, unless `options.dry_run`.
[[nodiscard]] Result<bool> retire_if_home(const Place& home, const JournalEntry& entry, const Survey& found,
                                          const SettleOptions& options);

/// Flushes the directory of `place`, so that its names survive a power failure.
[[nodiscard]] Result<void> sync_directory(const Place& place);

}  // namespace iosig
