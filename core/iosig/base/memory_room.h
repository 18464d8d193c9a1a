// How much memory a process may still fill. Files on tmpfs count as memory of the process that writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace iosig {

/// Returns how many bytes this process can put into memory before the kernel swaps, or kills a process: the least of
/// - MemAvailable of the machine, and
/// - for each of the process's memory control groups (versions 1 and 2) and the groups above it: the limit minus what
/// is
///   used, plus the cached file pages that the kernel can drop,
/// each less a tenth of the machine's memory or of the limit, at most `kept_free_bytes`, which the program itself
/// needs. Swap space does not count. Nothing if /proc has no MemAvailable.
///
/// `root` precedes each path, for tests: a tree recorded on another machine.
[[nodiscard]] std::optional<std::uint64_t> memory_room_bytes(const std::string& root = {});

inline constexpr std::uint64_t kept_free_bytes = std::uint64_t{4} << 30;

}  // namespace iosig
