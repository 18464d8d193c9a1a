// Finds the storage description for a verb, and tells the user which one.
#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "iosig/base/result.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/model/storage.h"
#include "verb.h"

namespace iosig::cli {

struct StorageSource {
  Storage storage;
  std::string file;         ///< empty: no file; the machine was inspected, with conservative defaults
  StorageFile found;        ///< why this file applies; only if there is one
  bool has_system = false;  ///< the machine's description was read beside it
};

/// Loads --storage, $IOSIG_STORAGE, the user's file for this host, or /etc/iosig/storage.toml, in this order, with what
/// the last adds (config/storage_file.h); notes if that cannot be read. Without any it inspects the machine quickly and
/// notes so.
[[nodiscard]] Result<StorageSource> load_storage(const std::string& option, const Console& console);

/// Returns the path of the description that was read, and why it applies.
[[nodiscard]] std::string about_file(const StorageSource& source);

/// Adds --storage, for load_storage. `file` must outlive the parsing.
void add_storage_option(Verb verb, std::string& file);

/// The described mount point with this path. Fails with `usage`, listing the known ones.
[[nodiscard]] Result<const MountPoint*> described_mount_point(const Storage& storage, const std::string& path);

/// Mount points that may hold data of this user: those of the description and of the journal. An unreadable description
/// only causes a note.
[[nodiscard]] std::vector<std::string> known_mount_points(const Journal& journal, const Console& console);

}  // namespace iosig::cli
