// A journal entry <-> bytes: one redirect, what was done and how to undo it. The format is docs/formats/journal.md.
//
// Pure: text in, text out. The files that hold the entries are the busy_warning of enact/journal_directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/process_life.h"
#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

/// What a redirect created: a link at `path` that leads to `destination`, or a directory for a job's own files.
enum class RedirectKind { link, directory };
/// The program that redirected.
enum class RedirectedBy { runtime, prepare, choose };

struct JournalEntry {
  std::string id;  ///< 16 lower-case hexadecimal digits, unique in this journal
  RedirectKind kind = RedirectKind::link;
  std::string path;         ///< the path that the program opens, absolute; for a directory the same as `destination`
  std::string destination;  ///< where the bytes are, absolute
  std::string mount_point;
  std::uint64_t filesystem_id = 0;  ///< of the file system there (f_fsid of statvfs); 0: unknown
  // Identifies the directory of `path` (enact/home.h); 0: unknown.
  std::uint64_t home_filesystem_id = 0;  ///< f_fsid of its file system
  std::uint64_t home_inode = 0;
  Signature signature;
  RedirectedBy by = RedirectedBy::runtime;
  std::int64_t pid = 0;
  std::string host;
  std::int64_t created_unix_s = 0;
  // These tell whether the maker still runs, independent of clock changes (enact/maker.h).
  std::int64_t session = 0;              ///< of the maker's processes (getsid); 0: unknown
  std::string boot;                      ///< the kernel's boot_id; empty: unknown
  std::int64_t created_boot_s = 0;       ///< seconds since boot
  NamespaceId pid_namespace;             ///< of `pid` and `session`; unknown: neither can be checked
  std::int64_t start_ticks = 0;          ///< start of process `pid` (base/process_life.h); 0: unknown
  std::int64_t session_start_ticks = 0;  ///< start of the leader of `session`; 0: unknown
  bool has_machines_host_name = true;    ///< false: `host` is a container's name, which may not be unique
  std::string job;                       ///< of the batch system (enact/batch_job.h), e.g. "slurm:4711"; empty: unknown
  bool drain = false;                    ///< `prepare --drain`: comes home in the background once it is closed

  bool operator==(const JournalEntry&) const = default;
};

/// Returns one line of JSON that ends with a checksum of everything before it. Paths are arbitrary bytes, so every byte
/// except printable ASCII is written as %XX, as in a file: URL. parse_journal_entry(journal_entry_text(e)) == e.
[[nodiscard]] std::string journal_entry_text(const JournalEntry& entry);

/// Fails with `bad_input`, naming `source`, for an entry that is truncated, modified or of a newer version.
[[nodiscard]] Result<JournalEntry> parse_journal_entry(std::string_view text, std::string_view source);

[[nodiscard]] const char* name_of(RedirectKind kind);
[[nodiscard]] const char* name_of(RedirectedBy by);

}  // namespace iosig
