// Whether the process that made a redirect, and the job that it belonged to, still live.
//
// Judged within one start of the machine (the kernel's boot id), by PID namespace, PID and start time
// (base/process_life.h), so neither a clock that jumps nor a PID that was given away again misleads. What cannot be
// judged from here is `unknown`, and callers keep what belongs to it.
#pragma once

#include "iosig/base/process_life.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Fills in who makes an entry: this process, its session, host, boot, and the times. Cheap: the boot id is read once
/// per process.
void sign(JournalEntry& entry);

/// The very process. `unknown` on another machine, in a PID namespace that cannot be seen from here, and for an entry
/// of an early version, which does not name the namespace.
[[nodiscard]] Life maker_of(const JournalEntry& entry);

/// The job: any process of the maker's session. A shell, a batch script and `mpirun` keep theirs as long as they run.
[[nodiscard]] Life job_of(const JournalEntry& entry);

/// Whether a program may be between its journal entry, its link and its data: it lives, or runs where it cannot be seen
/// from here. An entry of another machine or of an early version does not count.
[[nodiscard]] bool may_be_at_work(const JournalEntry& entry);

}  // namespace iosig
