// Tells whether the process that made a redirect, and its job, are still alive.
//
// Compares PID namespace, PID and start time (base/process_life.h) within one boot of the machine (the kernel's boot
// id), so neither clock changes nor reused PIDs mislead. What cannot be decided from here is `unknown`; callers then
// keep the files.
#pragma once

#include "iosig/base/process_life.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Fills in the maker of an entry: this process, its session, batch job, host, boot, and the times. Cheap: reads the
/// boot id once per process.
void sign(JournalEntry& entry);

/// Whether the entry was made on this machine since its last boot.
[[nodiscard]] bool is_of_this_start(const JournalEntry& entry);

/// Whether the maker itself is alive. `unknown` on another machine, for a PID namespace that is not visible from here,
/// and for an entry of an early version, which does not record the namespace.
[[nodiscard]] Life maker_of(const JournalEntry& entry);

/// Whether the job is alive: any process of the maker's session. A shell, a batch script and `mpirun` keep their
/// session as long as they run.
[[nodiscard]] Life job_of(const JournalEntry& entry);

/// Whether the maker may be between writing its journal entry, its link and its data: it is alive, or runs where it is
/// not visible from here. False for an entry of another machine or of an early version.
[[nodiscard]] bool may_be_at_work(const JournalEntry& entry);

}  // namespace iosig
