// Identifies this machine and its current boot, and tells the time.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace iosig {

/// Returns the kernel's boot id; empty if unavailable. Read once per process.
[[nodiscard]] const std::string& boot_id();

/// Returns the host name.
[[nodiscard]] std::string host_name();

/// Returns 16 hexadecimal digits that identify this machine since it was booted.
[[nodiscard]] std::string node_since_boot();

/// Returns the time in nanoseconds since 1970.
[[nodiscard]] std::int64_t unix_ns();
[[nodiscard]] inline std::int64_t unix_ns(const timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace iosig
