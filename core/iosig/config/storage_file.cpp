#include "iosig/config/storage_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/files.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/room.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/config/host_files.h"
#include "iosig/config/resolve_links.h"
#include "iosig/config/system_storage.h"
#include "iosig/format/storage_toml.h"

namespace iosig {
namespace {

/// One part in so many is left for what a file system stores beside the data: a file as large as all that statvfs calls
/// free does not fit.
constexpr std::uint64_t headroom_share = 50;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Returns the user's directory of descriptions by host. Empty: no home.
std::string hosts_directory() {
  const std::string directory = config_directory();
  return directory.empty() ? directory : directory + "/storage.d";
}

/// Returns the names in `directory`. Does not use opendir, which allocates with malloc: this also runs in a program's
/// signal handlers (runtime/host/run_isolated.h).
std::vector<std::string> names_of(const Fd& directory) {
  std::vector<std::string> names;
  alignas(dirent64) char space[8192];
  for (ssize_t got; (got = ::getdents64(directory.get(), space, sizeof space)) > 0;)
    for (ssize_t at = 0; at < got;) {
      const auto* item = reinterpret_cast<const dirent64*>(space + at);
      names.emplace_back(item->d_name);
      at += item->d_reclen;
    }
  return names;
}

void ask_room_of(MountPoint& mount) {
  mount.is_free_by_quota = false;
  if (is_free_space_set(mount)) return;
  mount.free_bytes.reset();
  const auto room = room_at(mount.path);
  if (!room) return;
  mount.free_bytes = room->bytes - room->bytes / headroom_share;
  mount.is_free_by_quota = room->by_quota;
}

/// Returns how many of the free bytes `max_share` withholds; all, if the file system does not tell its size.
std::uint64_t withheld_from(const MountPoint& mount) {
  const auto total = total_bytes_at(mount.path), free = free_bytes_at(mount.path);
  if (!total || !free) return *mount.free_bytes;
  const double kept = (1 - *mount.max_share) * static_cast<double>(*total);
  const std::uint64_t allowed = *free - std::min(*free, static_cast<std::uint64_t>(kept));
  return *mount.free_bytes - std::min(*mount.free_bytes, allowed);
}

/// Returns the user's file for this host in storage.d, if there is one.
Result<std::optional<StorageFile>> find_host_file() {
  const std::string directory = hosts_directory();
  if (directory.empty()) return std::optional<StorageFile>{};
  const Fd opened = open_file_at(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (!opened) {
    const int failure = errno;
    if (!exists(directory)) return std::optional<StorageFile>{};
    return system_failure("list the descriptions of hosts in", directory, failure);
  }
  const auto found = file_for_host(names_of(opened), host_name());
  if (!found) return std::optional<StorageFile>{};
  return StorageFile{host_storage_file(found->hosts), found->is_pattern ? StorageReason::hosts : StorageReason::host,
                     found->hosts};
}

}  // namespace

std::string reason_text(const StorageFile& file) {
  switch (file.reason) {
    case StorageReason::option: return "named by --storage";
    case StorageReason::environment: return "named by IOSIG_STORAGE";
    case StorageReason::host: return fmt::format("for the host '{}'", printable(file.hosts));
    case StorageReason::hosts: return fmt::format("for the hosts '{}'", printable(file.hosts));
    case StorageReason::user: return "this user's, for all hosts without their own";
    case StorageReason::system: return "the machine's";
  }
  return {};
}

std::string_view name_of(StorageReason reason) {
  switch (reason) {
    case StorageReason::option: return "option";
    case StorageReason::environment: return "environment";
    case StorageReason::host: return "host";
    case StorageReason::hosts: return "hosts";
    case StorageReason::user: return "user";
    case StorageReason::system: return "system";
  }
  return {};
}

std::string user_storage_file() {
  const std::string directory = config_directory();
  return directory.empty() ? directory : directory + "/storage.toml";
}

std::string host_storage_file(std::string_view hosts) {
  const std::string directory = hosts_directory();
  return directory.empty() ? directory : fmt::format("{}/{}.toml", directory, hosts);
}

bool is_standard_storage_file(const std::string& path) {
  const std::string of_hosts = hosts_directory();
  return path == system_storage_file || path == user_storage_file() ||
         (!of_hosts.empty() && path.starts_with(of_hosts + "/"));
}

Result<std::optional<StorageFile>> find_user_storage_file() {
  auto of_host = find_host_file();
  if (!of_host || *of_host) return of_host;
  if (std::string user_file = user_storage_file(); !user_file.empty() && exists(user_file))
    return StorageFile{std::move(user_file), StorageReason::user};
  return std::optional<StorageFile>{};
}

Result<std::optional<StorageFile>> find_storage_file(const std::string& explicit_path) {
  if (!explicit_path.empty()) return StorageFile{explicit_path, StorageReason::option};
  if (const char* named = ::secure_getenv("IOSIG_STORAGE"); named != nullptr && named[0] != '\0')
    return StorageFile{named, StorageReason::environment};
  auto of_user = find_user_storage_file();
  if (!of_user || *of_user) return of_user;
  if (exists(system_storage_file)) return StorageFile{system_storage_file, StorageReason::system};
  return std::optional<StorageFile>{};
}

Result<Storage> read_storage_file(const std::string& path, FreeSpace free_space) {
  const auto text =
      read_configuration(path, is_standard_storage_file(path) ? Configuration::found : Configuration::named);
  if (!text) return pass_on(text.error());
  auto storage = parse_storage(*text, path);
  if (storage && free_space == FreeSpace::ask) refresh_free_space(*storage);
  return storage;
}

Result<std::optional<AppliedStorage>> read_applied_storage(const std::string& explicit_path) {
  const auto file = find_storage_file(explicit_path);
  if (!file) return pass_on(file.error());
  if (!*file) return std::optional<AppliedStorage>{};
  auto read = read_storage_file((*file)->path, FreeSpace::leave);
  if (!read) return pass_on(read.error());
  AppliedStorage applied{*std::move(read), **file};
  if (applied.file.reason == StorageReason::system) {
    const Storage system = applied.storage;
    if (has_limits(system)) apply_limits(system, applied.storage, link_resolver());
    return applied;
  }
  if (!exists(system_storage_file)) return applied;
  const auto system = read_storage_file(system_storage_file, FreeSpace::leave);
  if (!system) {
    applied.system_fault = system.error().message;
    return applied;
  }
  const bool is_named =
      applied.file.reason == StorageReason::option || applied.file.reason == StorageReason::environment;
  if (!is_named) add_system_mount_points(*system, applied.storage);
  if (has_limits(*system)) apply_limits(*system, applied.storage, link_resolver());
  applied.has_system = true;
  return applied;
}

void ask_free_space(MountPoint& mount) {
  ask_room_of(mount);
  mount.withheld_bytes = mount.max_share && mount.free_bytes ? withheld_from(mount) : 0;
}

void refresh_free_space(Storage& storage) {
  struct Free {
    std::optional<std::uint64_t> bytes;
    std::uint64_t withheld_bytes = 0;
    bool by_quota = false;
  };
  for (MountPoint& mount : storage.mount_points) {
    const auto room = call_with_timeout([&] {
      ask_free_space(mount);
      return Free{mount.free_bytes, mount.withheld_bytes, mount.is_free_by_quota};
    });
    mount.free_bytes = room ? room->bytes : std::nullopt;
    mount.is_free_by_quota = room && room->by_quota;
    mount.withheld_bytes = room ? room->withheld_bytes : 0;
  }
}

}  // namespace iosig
