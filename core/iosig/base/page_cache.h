// How much the kernel's page cache may hold for this process: data that were written and are not stored yet, and data
// that can be read again without the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace iosig {

/// Absent: unknown.
struct PageCache {
  /// Dirty bytes up to which a writer is not made to wait for the storage: the middle between the two thresholds, which
  /// the kernel calls the freerun ceiling (mm/page-writeback.c).
  std::optional<std::uint64_t> unthrottled_bytes = {};
  /// Dirty bytes from which on the kernel stores them in the background.
  std::optional<std::uint64_t> background_bytes = {};
  /// Bytes of files that memory can hold.
  std::optional<std::uint64_t> cached_bytes = {};
};

/// Returns what the settings vm.dirty_{,background_}{ratio,bytes} allow, as shares of the memory that is available to
/// this process (memory_room_bytes in base/room.h). Reads /proc and the control groups of this process, about 30 us.
///
/// `root` precedes each path, for tests: a tree recorded on another machine.
[[nodiscard]] PageCache ask_page_cache(const std::string& root = {});

/// Dirty data that are older than this are stored even below `background_bytes` (vm.dirty_expire_centisecs, Linux's
/// default).
inline constexpr double dirty_expires_s = 30;

}  // namespace iosig
