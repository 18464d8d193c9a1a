// Collects what dead jobs left on the mount points: removes what is provably worthless, names what else lies there.
//
// Worthless are, once no process of the job's session lives and they rest for a while: temporary data that a program
// redirected, and the directories of `choose --make-folder` with all in them. Everything else stays: persistent data
// may be wanted, a prepared link waits for `finalize`, and of a file without a journal entry nobody knows whether a
// link leads to it. The journal is read and locked by the caller.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "iosig/enact/settle.h"

namespace iosig {

struct Leftover {
  bool removed = false;
  std::string path;  ///< of the data or the directory
  std::uint64_t data_bytes = 0;
  std::string why;
  bool is_unknown = false;  ///< whether its job still runs cannot be judged from here
};

struct CollectOptions {
  double older_than_s = 86400;  ///< since it was made, or anything in it last changed
  bool dry_run = false;
  OpenFiles open_files = {};
  std::set<std::string> accounted = {};  ///< paths in this user's directories that somebody else answers for
  /// Data, links or directories of unknown jobs that are to go all the same, whatever their age.
  std::set<std::string> named = {};
  bool only_named = false;  ///< everything else is kept
};

/// What was found in the journal, then what lies in this user's directories on `mount_points` without an entry. One
/// that the system refuses to remove is an error, and stops no other.
[[nodiscard]] std::vector<Result<Leftover>> collect(const Journal& journal,
                                                    const std::vector<std::string>& mount_points,
                                                    const CollectOptions& options);

}  // namespace iosig
