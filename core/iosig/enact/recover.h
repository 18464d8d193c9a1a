// Finishes or undoes what a crash cut short: a redirect whose program never came to write, a settlement in the midst.
//
// It touches nothing that is alive or complete: data that are redirected stay redirected, and a prepared link waits for
// its run. The journal is read and locked by the caller.
#pragma once

#include <string>
#include <vector>

#include "iosig/enact/settle.h"

namespace iosig {

struct Recovery {
  enum class Outcome {
    finished,  ///< what had begun is complete now
    undone,    ///< as if it had never begun
    left,      ///< nothing was cut short, or it cannot be told, or it is for the user to decide
  } outcome;
  std::string path;
  std::string why;  ///< what was found, or why it is left
};
[[nodiscard]] const char* name_of(Recovery::Outcome outcome);

/// Fails only when the system refuses; the entry then stays.
[[nodiscard]] Result<Recovery> recover(const JournalEntry& entry, const SettleOptions& options);

/// A cut entry is removed when nobody is writing it and no data of its redirect are in this user's directories on
/// `mount_points`. May wait for a second: another node may be writing it at this moment.
[[nodiscard]] Result<Recovery> recover(const Unreadable& entry, const std::vector<std::string>& mount_points,
                                       bool dry_run);

}  // namespace iosig
