// Finds, checks and reads the storage description of this user on this machine.
#pragma once

#include <optional>
#include <string>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Returns `explicit_path` (--storage) if not empty, else $IOSIG_STORAGE, else the user's file if it exists, else
/// /etc/iosig/storage.toml if it exists, else nothing.
[[nodiscard]] std::optional<std::string> find_storage_file(const std::string& explicit_path = {});

/// Returns where `iosig storage probe` writes by default: `~/.config/iosig/storage.toml` of the user. Empty: no home.
[[nodiscard]] std::string user_storage_file();

enum class FreeSpace { ask, leave };

/// Reads `path` and, unless `free_space` is `leave`, refreshes the free space. Refuses a file that an untrusted user
/// could write or replace (base/trust.h).
[[nodiscard]] Result<Storage> read_storage_file(const std::string& path, FreeSpace free_space = FreeSpace::ask);

/// Returns the manually set value, else the current room (base/room) less a fiftieth, which the file system needs
/// beside the data; nothing if that fails. Blocks while the server of a network file system does not respond.
[[nodiscard]] std::optional<std::uint64_t> ask_free_space(const MountPoint& mount);

/// Calls ask_free_space for every mount point, with a time limit (base/call_with_timeout). Only for our own programs:
/// in other processes, query only the mount points that a choice needs.
void refresh_free_space(Storage& storage);

}  // namespace iosig
