// The journal of this user: `<state directory>/journal/<id>.json`, one file per redirect (format/journal).
//
// An entry is written before the operation that it describes, and removed after that is undone or settled. A crash at
// any point therefore leaves a trace that leads to the data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/enact/user_directory.h"
#include "iosig/format/journal.h"

namespace iosig {

/// Returns an entry for an operation of this process now: with a new random id, signed (enact/maker.h).
[[nodiscard]] Result<JournalEntry> new_journal_entry(RedirectedBy by);

/// Creates the entry's file; never replaces one. `durable`: flushes it to the device, to survive a crash of the
/// machine.
[[nodiscard]] Result<void> record(const JournalEntry& entry, bool durable);

/// Writes the entry durably: replaces the one with its id, or creates it.
[[nodiscard]] Result<void> rewrite_entry(const JournalEntry& entry);

/// Returns the entry with this id; no value if there is none that can be read.
[[nodiscard]] std::optional<JournalEntry> recorded_entry(const std::string& id);

/// Whether there is an entry with this id.
[[nodiscard]] bool is_recorded(std::string_view id);
/// Whether the journal is there and has no entry with this id. Without the journal, whose file system may not be
/// mounted, neither this nor is_recorded() is true.
[[nodiscard]] bool is_settled(std::string_view id);

/// Returns a number that identifies this journal: in a container, the same user may have another home directory, and so
/// another journal. 0: there is none.
[[nodiscard]] std::uint32_t journal_mark();

/// Removes the entry's file. Succeeds if it does not exist.
[[nodiscard]] Result<void> forget(const JournalEntry& entry);

/// A file of the journal that cannot be read.
struct Unreadable {
  std::string path;
  bool is_cut = false;  ///< truncated: its writer was killed, or the machine crashed before it was on disk
  Error error;          ///< names the file and the remedy
};

struct Journal {
  std::vector<JournalEntry> entries;  ///< oldest first
  std::vector<Unreadable> unreadable;
};

/// Reads every entry. A journal that does not exist yet is empty.
[[nodiscard]] Result<Journal> read_journal();

/// Locks the journal while redirects are settled. All runs of finalize, recover and gc share the lock. Fails as
/// `system` while a run of an early version, which locks the journal exclusively, is active. Removes the drafts of dead
/// runs and the records of dead drains.
[[nodiscard]] Result<Fd> join_journal();

/// Locks one redirect while it is settled, so two runs never work on the same one. The lock ends with its holder; a
/// process holds one at a time. No value: another process has it, and `if_busy` is `skip`. After waiting, check that
/// the entry is still recorded. Where the journal's file system cannot lock, data are settled without a lock.
enum class IfBusy { wait, skip };
/// A redirect has two locks: a run holds `settling` while it changes files, a drain holds `draining` as long as it is
/// responsible for the redirect, also while it waits (enact/drain.h).
enum class LockFor { settling, draining };
[[nodiscard]] Result<std::optional<Fd>> lock_entry(std::string_view id, IfBusy if_busy,
                                                   LockFor purpose = LockFor::settling);
/// Whether a process has the lock.
[[nodiscard]] bool is_locked(std::string_view id, LockFor purpose);

/// Opens the directory of the journal; creates it if it is missing, unless `if_missing` is `refuse`. Names with a
/// leading dot are not entries.
struct OpenJournal {
  Fd directory;
  std::string path;
};
[[nodiscard]] Result<OpenJournal> open_journal_directory(IfMissing if_missing = IfMissing::make);

/// Returns the f_fsid of the file system with the open `directory`; 0: unknown.
[[nodiscard]] std::uint64_t filesystem_id(const Fd& directory);

}  // namespace iosig
