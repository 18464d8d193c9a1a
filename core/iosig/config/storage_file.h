// Finds, guards and reads the storage description of this user on this machine.
#pragma once

#include <optional>
#include <string>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// `explicit_path` (--storage) if not empty, else $IOSIG_STORAGE, else the user's file if it exists, else
/// /etc/iosig/storage.toml if it exists, else nothing.
[[nodiscard]] std::optional<std::string> find_storage_file(const std::string& explicit_path = {});

/// Where `iosig storage probe` writes by default: the user's `~/.config/iosig/storage.toml`. Empty: there is no home.
[[nodiscard]] std::string user_storage_file();

enum class FreeSpace { ask, leave };

/// Reads `path` and, if told so, refreshes the free space.
/// Refuses a file that an untrusted user could write or swap (base/trust.h).
[[nodiscard]] Result<Storage> read_storage_file(const std::string& path, FreeSpace free_space = FreeSpace::ask);

/// What is set by hand, else what statvfs says now; nothing for one that cannot be asked (gone). Hangs while a network
/// file system's server does not answer.
[[nodiscard]] std::optional<std::uint64_t> ask_free_space(const MountPoint& mount);

/// ask_free_space of every mount point, of those that answer in time (base/call_with_timeout). For programs of our own:
/// in other people's processes only those are asked that a choice needs.
void refresh_free_space(Storage& storage);

}  // namespace iosig
