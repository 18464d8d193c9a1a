#include "iosig/base/room.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/quota.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// The files of one version of memory control groups.
struct ControlGroups {
  const char* directory;
  const char *limit, *lower_limit, *used;
  const char *inactive, *active;  ///< keys of memory.stat: cached file pages, those of tmpfs excluded
};
constexpr ControlGroups version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", nullptr,
                                  "memory.usage_in_bytes", "total_inactive_file ",  "total_active_file "};
constexpr ControlGroups version_2{"/sys/fs/cgroup", "memory.max",     "memory.high",
                                  "memory.current", "inactive_file ", "active_file "};

/// Version 1 reports a limit of nearly 2^63 where there is none.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

std::uint64_t less_a_reserve(std::uint64_t bytes, std::uint64_t of_bytes) {
  return bytes - std::min({bytes, of_bytes / 10, kept_free_bytes});
}

/// Returns the number behind `key` at the beginning of a line of `text`.
std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    const std::string_view number = trimmed(line.substr(key.size()));
    return parse_count<std::uint64_t>(number.substr(0, number.find(' ')));  // " kB" may follow
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_file(path);
  return text ? parse_count<std::uint64_t>(trimmed(*text)) : std::nullopt;  // nothing too if it is "max"
}

/// Returns the room in one control group, or `at_most` if the group leaves more. memory.stat, which the kernel takes
/// long to make, is read only if the cached pages of files matter.
std::uint64_t room_in(const std::string& group, const ControlGroups& version, std::uint64_t at_most) {
  auto limit = number_in(group + version.limit);
  if (version.lower_limit != nullptr)
    if (const auto lower = number_in(group + version.lower_limit)) limit = std::min(*lower, limit.value_or(*lower));
  const auto used = limit && *limit < no_limit ? number_in(group + version.used) : std::nullopt;
  if (!used) return at_most;
  const auto room_beside = [&](std::uint64_t held) { return less_a_reserve(*limit - std::min(*limit, held), *limit); };
  if (room_beside(*used) >= at_most) return at_most;
  const auto statistics = read_file(group + "memory.stat");
  const auto droppable = [&](const char* key) {
    return statistics ? number_behind(key, *statistics).value_or(0) : std::uint64_t{0};
  };
  return std::min(at_most,
                  room_beside(*used - std::min(*used, droppable(version.inactive) + droppable(version.active))));
}

/// Lowers `room` to that of the group at `path` and of every group above it.
void limit_by_groups(std::uint64_t& room, const std::string& directory, std::string_view path,
                     const ControlGroups& version) {
  if (!path.starts_with('/')) return;
  for (std::string group(without_trailing_slashes(path));; group.resize(group.rfind('/'))) {
    if (group == "/") group.clear();
    room = room_in(directory + group + "/", version, room);
    if (group.empty()) return;
  }
}

}  // namespace

Result<Room> room_at(const std::string& path) {
  const auto free = free_bytes_at(path);
  if (!free) return pass_on(free.error());
  Room room{*free};
  if (const auto left = quota_room_bytes(path); left && *left < room.bytes) room = {*left, true};
  struct statfs status {};
  if (::statfs(path.c_str(), &status) != 0 || status.f_type != TMPFS_MAGIC) return room;
  if (const auto memory = memory_room_bytes(); memory && *memory < room.bytes) room = {*memory, false};
  return room;
}

std::optional<std::uint64_t> memory_room_bytes(const std::string& root) {
  const auto memory = read_file(root + "/proc/meminfo");
  if (!memory) return std::nullopt;
  const auto total_kib = number_behind("MemTotal:", *memory), available_kib = number_behind("MemAvailable:", *memory);
  if (!total_kib || !available_kib) return std::nullopt;
  std::uint64_t room = less_a_reserve(*available_kib * 1024, *total_kib * 1024);
  const auto groups = read_file(root + "/proc/self/cgroup");
  if (!groups) return room;
  for (const std::string_view line : split(*groups, '\n')) {  // ID:CONTROLLERS:PATH
    const auto controllers = line.find(':');
    const auto path = controllers == line.npos ? line.npos : line.find(':', controllers + 1);
    if (path == line.npos) continue;
    const auto names = split(line.substr(controllers + 1, path - controllers - 1), ',');
    if (line.starts_with("0::"))
      limit_by_groups(room, root + version_2.directory, line.substr(path + 1), version_2);
    else if (std::ranges::find(names, "memory") != names.end())
      limit_by_groups(room, root + version_1.directory, line.substr(path + 1), version_1);
  }
  return room;
}

}  // namespace iosig
