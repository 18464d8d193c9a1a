// Watches the links that this process made. When the program deletes such a link, its data on the mount point are
// deleted, too.
#pragma once

#include "iosig/enact/deleted.h"

namespace iosig::runtime {

// These functions must be called inside run_isolated().

/// Watches a link until it is deleted. Only the 128 newest links are watched.
void remember_link(HeldLink link, const JournalEntry& entry);

/// **Deletes** the data of links that the program has deleted. `few`: checks a few links per call, in turn; `all`:
/// checks all. Data that cannot be deleted now are orphans, which `iosig finalize` reports.
enum class Among { few, all };
void drop_deleted_data(Among among);

}  // namespace iosig::runtime
