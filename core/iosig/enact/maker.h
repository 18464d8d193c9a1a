// Whether the process that made a redirect, and the job that it belonged to, still live.
//
// Judged by the kernel's boot id and the time since the machine started, so a clock that jumps misleads nobody.
#pragma once

#include "iosig/format/journal.h"

namespace iosig {

enum class Life {
  alive,
  dead,
  unknown,  ///< on another machine, or an entry that does not say: it is spared
};

/// Fills in pid, session, host, boot and the times of an entry that this process makes now. Cheap: the boot id is read
/// once per process.
void sign(JournalEntry& entry);

/// The very process; one that got its number later is another.
[[nodiscard]] Life maker_of(const JournalEntry& entry);

/// The job: any process of the maker's session. A shell, a batch script and `mpirun` keep theirs as long as they run.
[[nodiscard]] Life job_of(const JournalEntry& entry);

/// Whether process `pid` of this machine lives and began not after `boot_s` seconds since the machine's start.
[[nodiscard]] bool process_lives(std::int64_t pid, std::int64_t boot_s);

}  // namespace iosig
