#include "iosig/config/storage_file.h"

#include <unistd.h>

#include <cstdlib>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/files.h"
#include "iosig/base/room.h"
#include "iosig/base/trust.h"
#include "iosig/format/storage_toml.h"

namespace iosig {
namespace {

constexpr const char* system_storage_file = "/etc/iosig/storage.toml";
/// One part in so many is left for what a file system stores beside the data: a file as large as all that statvfs calls
/// free does not fit.
constexpr std::uint64_t headroom_share = 50;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

std::string user_storage_file() {
  const std::string directory = config_directory();
  return directory.empty() ? directory : directory + "/storage.toml";
}

std::optional<std::string> find_storage_file(const std::string& explicit_path) {
  if (!explicit_path.empty()) return explicit_path;
  if (const char* named = ::secure_getenv("IOSIG_STORAGE"); named != nullptr && named[0] != '\0') return named;
  if (std::string user_file = user_storage_file(); !user_file.empty() && exists(user_file)) return user_file;
  if (exists(system_storage_file)) return system_storage_file;
  return std::nullopt;
}

Result<Storage> read_storage_file(const std::string& path, FreeSpace free_space) {
  const bool is_found = path == system_storage_file || path == user_storage_file();
  const auto text = read_configuration(path, is_found ? Configuration::found : Configuration::named);
  if (!text) return pass_on(text.error());
  auto storage = parse_storage(*text, path);
  if (storage && free_space == FreeSpace::ask) refresh_free_space(*storage);
  return storage;
}

std::optional<std::uint64_t> ask_free_space(const MountPoint& mount) {
  if (is_free_space_set(mount)) return mount.free_bytes;
  const auto room = room_bytes_at(mount.path);
  return room ? std::optional(*room - *room / headroom_share) : std::nullopt;
}

void refresh_free_space(Storage& storage) {
  for (MountPoint& mount : storage.mount_points)
    mount.free_bytes = call_with_timeout([&] { return ask_free_space(mount); }).value_or(std::nullopt);
}

}  // namespace iosig
