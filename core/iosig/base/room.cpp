#include "iosig/base/room.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <ctime>
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

/// The tmpfs that was last found to have no quotas, which are chosen when it is mounted; 0: none. The id is random.
std::atomic<std::uint64_t> without_quotas{0};
std::atomic<bool> keeps_memory_room{false};

std::uint64_t id_of(const struct statfs& status) {
  static_assert(sizeof status.f_fsid == sizeof(std::uint64_t));
  return std::bit_cast<std::uint64_t>(status.f_fsid);
}

bool has_no_quotas(const struct statfs& status) { return id_of(status) != 0 && without_quotas == id_of(status); }

std::optional<std::uint64_t> quota_left(const std::string& path, const struct statfs& status) {
  bool has_none = false;
  const auto left = quota_room_bytes(path, &has_none);
  if (has_none && status.f_type == TMPFS_MAGIC) without_quotas = id_of(status);
  return left;
}

}  // namespace

[[gnu::hot]] void keep_memory_room() { keeps_memory_room = true; }

Result<Room> room_at(const std::string& path) {
  struct statfs status {};
  // With a slash at its end, the path of a file fails with ENOTDIR.
  if (::statfs((path + "/").c_str(), &status) != 0) return system_failure("ask the free space of", path);
  const bool is_memory = status.f_type == TMPFS_MAGIC;
  const bool has_inodes = status.f_files == 0 || status.f_ffree != 0;
  Room room{has_inodes ? static_cast<std::uint64_t>(status.f_bavail) * static_cast<std::uint64_t>(status.f_frsize) : 0};
  if (!is_memory || !has_no_quotas(status))
    if (const auto left = quota_left(path, status); left && *left < room.bytes) room = {*left, true};
  if (!is_memory) return room;
  if (const auto memory = keeps_memory_room ? recent_memory_room_bytes() : memory_room_bytes();
      memory && *memory < room.bytes)
    room = {*memory, false};
  return room;
}

namespace {

/// An answer of memory_room_bytes() in one word, which threads may share: mebibytes, rounded down, and milliseconds of
/// the monotonic clock. 0: none.
constexpr unsigned time_bits = 36;  // two years
constexpr std::uint64_t longest_kept_ms = 100;
std::atomic<std::uint64_t> kept_answer{0};

/// How long an answer counts: as long as programs cannot have filled more than a sixteenth of that room, at 10 GB/s.
std::uint64_t kept_for_ms(std::uint64_t room_bytes) { return std::min(longest_kept_ms, room_bytes / 16 / 10'000'000); }

std::uint64_t now_ms() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000) &
         ((std::uint64_t{1} << time_bits) - 1);
}

}  // namespace

std::optional<std::uint64_t> recent_memory_room_bytes() {
  const std::uint64_t kept = kept_answer.load(std::memory_order_relaxed), now = now_ms();
  const std::uint64_t kept_bytes = (kept >> time_bits) << 20, asked_ms = kept & ((std::uint64_t{1} << time_bits) - 1);
  if (kept != 0 && now - asked_ms < kept_for_ms(kept_bytes)) return kept_bytes;
  const auto room = memory_room_bytes();
  if (room) kept_answer.store((*room >> 20) << time_bits | now, std::memory_order_relaxed);
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
