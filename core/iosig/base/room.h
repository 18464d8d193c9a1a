// How much a program may still store: on a file system, and in memory. Files on tmpfs are memory of the program that
// writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "iosig/base/result.h"

namespace iosig {

struct Room {
  std::uint64_t bytes = 0;
  bool by_quota = false;  ///< a quota leaves less than the file system has
};

/// Returns free_bytes_at(path), at most what quotas leave (base/quota); on tmpfs at most memory_room_bytes(), because
/// statvfs reports the size of the mount, whether or not there is memory for it. None where the file system does not
/// tell its size.
[[nodiscard]] Result<Room> room_at(const std::string& path);

/// Returns how many bytes this process can put into memory before the kernel swaps, or kills a process: the least of
/// the machine's (MemAvailable) and that of each memory control group of the process and above it (versions 1 and 2:
/// limit - usage + the cached pages of files, which the kernel can drop). From each, a tenth of the machine's memory or
/// of the limit, at most `kept_free_bytes`, is left to the program itself. Swap space does not count. Nothing if /proc
/// has no MemAvailable.
///
/// `root` precedes each path, for tests: a tree recorded on another machine.
[[nodiscard]] std::optional<std::uint64_t> memory_room_bytes(const std::string& root = {});

/// From now on room_at() takes recent_memory_room_bytes(): for libraries, which decide whenever a file is opened.
void keep_memory_room();

/// Returns what memory_room_bytes() said a moment ago: at most a tenth of a second, and so recently that programs
/// cannot have filled more than a sixteenth of it since. Else asks it. Reading /proc and the control groups takes
/// longer than the rest of a decision.
[[nodiscard]] std::optional<std::uint64_t> recent_memory_room_bytes();

inline constexpr std::uint64_t kept_free_bytes = std::uint64_t{4} << 30;

}  // namespace iosig
