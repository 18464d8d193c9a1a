// Which storage description a verb works with, and how the user hears of it.
#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/model/storage.h"
#include "verb.h"

namespace iosig::cli {

struct StorageSource {
  Storage storage;
  std::string file;  ///< empty: there is none, the machine was inspected with conservative defaults
};

/// --storage, $IOSIG_STORAGE, the user's file, /etc/iosig/storage.toml; with none, a quick inspection, and a note says
/// so.
[[nodiscard]] Result<StorageSource> load_storage(const std::string& option, const Console& console);

/// --storage, for load_storage. `file` must outlive the parsing.
void add_storage_option(Verb verb, std::string& file);

/// The mount point with this path. Fails as `usage`, naming those that there are.
[[nodiscard]] Result<const MountPoint*> described_mount_point(const Storage& storage, const std::string& path);

/// The paths of the mount points where data of this user may be: the description's and the journal's. A description
/// that cannot be read is a note.
[[nodiscard]] std::vector<std::string> known_mount_points(const Journal& journal, const Console& console);

}  // namespace iosig::cli
