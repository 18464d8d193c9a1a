// Completes or undoes what a crash interrupted: a redirect whose program died before it wrote, or a settlement in
// progress.
//
// Leaves alone what is alive or complete: redirected data stay redirected, and a prepared link waits for its run. The
// caller reads and locks the journal.
#pragma once

#include <string>
#include <vector>

#include "iosig/enact/settle.h"

namespace iosig {

struct Recovery {
  enum class Outcome {
    finished,  ///< the interrupted operation is now complete
    undone,    ///< the interrupted operation is undone
    left,      ///< nothing was interrupted, or it cannot be decided, or the user must decide
  } outcome;
  std::string path;
  std::string why;  ///< what was found, or why it was left
};
[[nodiscard]] const char* name_of(Recovery::Outcome outcome);

/// Fails only on a system error; the entry then stays.
[[nodiscard]] Result<Recovery> recover(const JournalEntry& entry, const SettleOptions& options);

/// Removes a truncated entry if no process is writing it and this user's directories on `mount_points` hold no data of
/// its redirect. May wait for a second, as another node may be writing the entry now.
[[nodiscard]] Result<Recovery> recover(const Unreadable& entry, const std::vector<std::string>& mount_points,
                                       bool dry_run);

}  // namespace iosig
