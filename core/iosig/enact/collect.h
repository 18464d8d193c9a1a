// **Deletes** what dead jobs left on the mount points if it is provably worthless; reports the rest.
//
// Worthless are, once no process of the job's session is alive and they have been unchanged for a while: temporary data
// that a program redirected, and the directories of `choose --make-folder` with their content. Everything else stays:
// persistent data may be wanted, a prepared link waits for `finalize`, and a link may lead to a file without a journal
// entry. The caller reads and locks the journal.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "iosig/enact/settle.h"

namespace iosig {

struct Leftover {
  bool removed = false;
  std::string path;  ///< path of the data or the directory
  std::uint64_t data_bytes = 0;
  std::string why;
  bool is_unknown = false;  ///< whether its job still runs cannot be decided from here
};

struct CollectOptions {
  double older_than_s = 86400;  ///< since it was created, or anything in it last changed
  bool dry_run = false;
  OpenFiles open_files = {};
  std::set<std::string> accounted = {};  ///< paths in this user's directories that another component manages
  /// Data, links or directories of unknown jobs to **delete** nevertheless, whatever their age.
  std::set<std::string> named = {};
  bool only_named = false;  ///< keep everything else
};

/// Returns the leftovers in the journal, then the files without an entry in this user's directories on `mount_points`.
/// If the system refuses to remove one, its result is an error; the others are processed.
[[nodiscard]] std::vector<Result<Leftover>> collect(const Journal& journal,
                                                    const std::vector<std::string>& mount_points,
                                                    const CollectOptions& options);

}  // namespace iosig
