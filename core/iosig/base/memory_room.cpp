#include "iosig/base/memory_room.h"

#include <algorithm>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

/// The files of one version of memory control groups.
struct Version {
  const char* directory;
  const char *limit, *lower_limit, *used;
  const char *inactive, *active;  ///< keys of memory.stat: cached file pages, those of tmpfs excluded
};
constexpr Version version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", nullptr,
                            "memory.usage_in_bytes", "total_inactive_file",   "total_active_file"};
constexpr Version version_2{"/sys/fs/cgroup", "memory.max",    "memory.high",
                            "memory.current", "inactive_file", "active_file"};

/// Version 1 reports a limit of nearly 2^63 where there is none.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

std::uint64_t less_a_reserve(std::uint64_t bytes, std::uint64_t of_bytes) {
  return bytes - std::min({bytes, of_bytes / 10, kept_free_bytes});
}

/// Returns the number behind `key` in text of the form "key: 17 kB" or "key 17", in the text's unit.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 2 || (words[0] != key && words[0] != std::string(key) + ":")) continue;
    return parse_count<std::uint64_t>(words[1]);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_file(path);
  return text ? parse_count<std::uint64_t>(trimmed(*text)) : std::nullopt;  // nothing too if it is "max"
}

/// Returns the room in one control group, or `at_most` if the group leaves more. memory.stat, which the kernel takes
/// long to make, is read only if the cached pages of files matter.
std::uint64_t room_in(const std::string& group, const Version& version, std::uint64_t at_most) {
  auto limit = number_in(group + version.limit);
  if (version.lower_limit != nullptr)
    if (const auto lower = number_in(group + version.lower_limit)) limit = std::min(*lower, limit.value_or(*lower));
  const auto used = limit && *limit < no_limit ? number_in(group + version.used) : std::nullopt;
  if (!used) return at_most;
  const auto room_beside = [&](std::uint64_t held) { return less_a_reserve(*limit - std::min(*limit, held), *limit); };
  if (room_beside(*used) >= at_most) return at_most;
  const auto statistics = read_file(group + "memory.stat");
  const auto droppable = [&](const char* key) {
    return statistics ? value_of(*statistics, key).value_or(0) : std::uint64_t{0};
  };
  return std::min(at_most,
                  room_beside(*used - std::min(*used, droppable(version.inactive) + droppable(version.active))));
}

/// Lowers `room` to that of the group at `path` and of every group above it.
void limit_by_groups(std::uint64_t& room, const std::string& directory, std::string_view path, const Version& version) {
  if (!path.starts_with('/')) return;
  for (std::string group(without_trailing_slashes(path));; group.resize(group.rfind('/'))) {
    if (group == "/") group.clear();
    room = room_in(directory + group + "/", version, room);
    if (group.empty()) return;
  }
}

}  // namespace

std::optional<std::uint64_t> memory_room_bytes(const std::string& root) {
  const auto memory = read_file(root + "/proc/meminfo");
  if (!memory) return std::nullopt;
  const auto total_kib = value_of(*memory, "MemTotal"), available_kib = value_of(*memory, "MemAvailable");
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
