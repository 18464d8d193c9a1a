// Finds, checks and reads the storage description of this user on this machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Why a storage description applies, the strongest reason first.
enum class StorageReason {
  option,       ///< the caller names it (--storage)
  environment,  ///< $IOSIG_STORAGE names it
  host,         ///< the user's, for the name of this host
  hosts,        ///< the user's, for a pattern of hosts that covers this one
  user,         ///< the user's, for hosts without a description of their own
  system,       ///< the machine's
};

struct StorageFile {
  std::string path;
  StorageReason reason = StorageReason::option;
  std::string hosts = {};  ///< of `host` and `hosts`: the name or pattern
};

/// Returns the reason as a phrase for messages ("for the hosts 'node*'"), and as a word for JSON ("hosts").
[[nodiscard]] std::string reason_text(const StorageFile& file);
[[nodiscard]] std::string_view name_of(StorageReason reason);

/// Returns `explicit_path` (--storage) if not empty, else $IOSIG_STORAGE, else find_user_storage_file(), else
/// /etc/iosig/storage.toml if it exists, else nothing. Fails as find_user_storage_file().
[[nodiscard]] Result<std::optional<StorageFile>> find_storage_file(const std::string& explicit_path = {});

/// Returns the file of `~/.config/iosig/storage.d` for this host (config/host_files.h), else
/// `~/.config/iosig/storage.toml` if it exists, else nothing. Fails with `system` if storage.d exists and cannot be
/// listed. Costs one open(2) if there is no storage.d; safe in a program's signal handlers.
[[nodiscard]] Result<std::optional<StorageFile>> find_user_storage_file();

/// Returns `~/.config/iosig/storage.toml` of the user. Empty: no home.
[[nodiscard]] std::string user_storage_file();

/// Returns `~/.config/iosig/storage.d/HOSTS.toml` of the user. Empty: no home.
[[nodiscard]] std::string host_storage_file(std::string_view hosts);

/// Whether IOSIG finds a description at `path` without being told.
[[nodiscard]] bool is_standard_storage_file(const std::string& path);

inline constexpr const char* system_storage_file = "/etc/iosig/storage.toml";

enum class FreeSpace { ask, leave };

/// Reads `path` and, unless `free_space` is `leave`, refreshes the free space. Refuses a file that an untrusted user
/// could write or replace (base/trust.h).
[[nodiscard]] Result<Storage> read_storage_file(const std::string& path, FreeSpace free_space = FreeSpace::ask);

/// A description with what the machine's adds to it.
struct AppliedStorage {
  Storage storage;
  StorageFile file;
  bool has_system = false;        ///< the machine's description was read besides `file`
  std::string system_fault = {};  ///< why it was not, although it exists: its mount points and limits do not count
};

/// Reads the description that applies (find_storage_file), and beside it /etc/iosig/storage.toml if it exists. Its
/// limits hold for every description; its mount points are added to the user's, but not to a file that is named
/// (config/system_storage.h). Returns nothing if there is no description. Does not ask for the free space.
[[nodiscard]] Result<std::optional<AppliedStorage>> read_applied_storage(const std::string& explicit_path = {});

/// Sets `free_bytes`: the manually set value, else the current room (base/room) less a fiftieth, which the file system
/// needs beside the data; nothing if that fails. Sets `withheld_bytes` for a `max_share`: of the free bytes, all but
/// those that can be used until this share of the file system is in use. Blocks while the server of a network file
/// system does not respond.
void ask_free_space(MountPoint& mount);

/// Calls ask_free_space for every mount point, with a time limit (base/call_with_timeout). Only for our own programs:
/// in other processes, query only the mount points that a choice needs.
void refresh_free_space(Storage& storage);

}  // namespace iosig
