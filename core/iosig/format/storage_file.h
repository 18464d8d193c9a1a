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

/// Reads `path` and asks statvfs for each mount point whose `free` is not set by hand.
/// Refuses as `bad_input`, when running as root, a file that every user can write.
[[nodiscard]] Result<Storage> read_storage_file(const std::string& path);

/// statvfs of every mount point whose `free` is not set by hand; one that cannot be asked (gone) keeps no free space.
void refresh_free_space(Storage& storage);

}  // namespace iosig
