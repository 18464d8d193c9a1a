// A journal entry <-> bytes: one redirect, what was done and how to undo it. The format is docs/formats/journal.md.
//
// Pure: text in, text out. Which files hold the entries is enact/journal_directory's to know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/process_life.h"
#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

/// What a redirect put in place: a link at `path` that leads to `destination`, or a directory for a job's own files.
enum class RedirectKind { link, directory };
/// Who redirected.
enum class RedirectedBy { runtime, prepare, choose };

struct JournalEntry {
  std::string id;  ///< 16 lower-case hexadecimal digits, unique in this journal
  RedirectKind kind = RedirectKind::link;
  std::string path;         ///< what the program opens, absolute; of a directory: the same as `destination`
  std::string destination;  ///< where the bytes are, absolute
  std::string mount_point;
  std::uint64_t filesystem_id = 0;  ///< of what was mounted there (f_fsid of statvfs); 0: not known
  // Which directory `path` is in (enact/home.h); 0: not known.
  std::uint64_t home_filesystem_id = 0;  ///< f_fsid of its file system
  std::uint64_t home_inode = 0;
  Signature signature;
  RedirectedBy by = RedirectedBy::runtime;
  std::int64_t pid = 0;
  std::string host;
  std::int64_t created_unix_s = 0;
  // Whether the maker still lives is told by these, which no change of the clock touches (enact/maker.h).
  std::int64_t session = 0;              ///< of the maker's processes (getsid); 0: not known
  std::string boot;                      ///< which start of the machine (the kernel's boot_id); empty: not known
  std::int64_t created_boot_s = 0;       ///< seconds since that start
  NamespaceId pid_namespace;             ///< that counts `pid` and `session`; not known: they cannot be judged
  std::int64_t start_ticks = 0;          ///< when process `pid` started (base/process_life.h); 0: not known
  std::int64_t session_start_ticks = 0;  ///< likewise the leader of `session`
  bool has_machines_host_name = true;    ///< false: `host` is the name of a container, which others may have too

  bool operator==(const JournalEntry&) const = default;
};

/// One line of JSON that ends with a checksum of all before it. Paths are arbitrary bytes, so they are written with
/// every byte but printable ASCII as %XX, as in a file: URL. parse_journal_entry(journal_entry_text(e)) == e.
[[nodiscard]] std::string journal_entry_text(const JournalEntry& entry);

/// Fails with `bad_input`, naming `source`, for an entry that was cut, changed, or written by a newer version.
[[nodiscard]] Result<JournalEntry> parse_journal_entry(std::string_view text, std::string_view source);

[[nodiscard]] const char* name_of(RedirectKind kind);
[[nodiscard]] const char* name_of(RedirectedBy by);

}  // namespace iosig
