// The journal of this user: `<state directory>/journal/<id>.json`, one file per redirect (format/journal).
//
// An entry is written before the act it describes and removed after the act is undone or settled, so that a crash at
// any point leaves a trace that leads to the data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/format/journal.h"

namespace iosig {

/// An entry for an act of this process, now: with a fresh random id, signed (enact/maker.h).
[[nodiscard]] Result<JournalEntry> new_journal_entry(RedirectedBy by);

/// Creates the entry's file (never replaces one). `durable` syncs it, so that it also survives a crash of the machine.
[[nodiscard]] Result<void> record(const JournalEntry& entry, bool durable);

/// Writes the entry, durably, in place of the one with its id, or as a new one.
[[nodiscard]] Result<void> record_anew(const JournalEntry& entry);

/// The entry with this id; nothing when there is none that can be read.
[[nodiscard]] std::optional<JournalEntry> recorded_entry(const std::string& id);

/// Whether there is an entry with this id.
[[nodiscard]] bool is_recorded(std::string_view id);

/// Tells this user's journals apart: a container may have a home, and so a journal, of its own. 0: there is none.
[[nodiscard]] std::uint32_t journal_mark();

/// Removes the entry's file; one that is not there is no failure.
[[nodiscard]] Result<void> forget(const JournalEntry& entry);

/// A file of the journal that cannot be used.
struct Unreadable {
  std::string path;
  bool is_cut = false;  ///< its writer was killed, or the machine crashed before it was on disk
  Error error;          ///< says which file, and what to do
};

struct Journal {
  std::vector<JournalEntry> entries;  ///< oldest first
  std::vector<Unreadable> unreadable;
};

/// Every entry. A journal that does not exist yet is empty.
[[nodiscard]] Result<Journal> read_journal();

/// Held while redirects are settled. Shared by all runs of finalize, recover and gc; fails as `system` while one of an
/// early version, which wants the journal for itself, is at work. Removes the drafts of dead runs.
[[nodiscard]] Result<Fd> join_journal();

/// Held while one redirect is settled, so that two runs never work on the same. Ends with its holder. Nothing: another
/// process has it, and `if_busy` says not to wait. After a wait, look whether the entry is still recorded. Where the
/// journal's file system cannot lock, data are settled without. One process holds one at a time.
enum class IfBusy { wait, skip };
[[nodiscard]] Result<std::optional<Fd>> lock_entry(std::string_view id, IfBusy if_busy);

/// f_fsid of the file system that holds the open `directory`; 0: not known.
[[nodiscard]] std::uint64_t filesystem_id(const Fd& directory);

}  // namespace iosig
