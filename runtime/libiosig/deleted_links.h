// The links that this process made, watched for being deleted: data that the program deletes leave the mount point.
#pragma once

#include "iosig/enact/deleted.h"

namespace iosig::runtime {

// To be called inside run_isolated.

/// Remembers a link until it is deleted; of thousands, those made last.
void remember_link(HeldLink link, const JournalEntry& entry);

/// **Deletes** the data of links that were deleted: of a few that are remembered, in turn, or of all. What cannot be
/// dropped now is an orphan, for `iosig finalize` to tell of.
enum class Among { few, all };
void drop_deleted_data(Among among);

}  // namespace iosig::runtime
