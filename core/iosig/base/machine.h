// Which machine this is, which start of it, and what time.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace iosig {

/// The kernel's id of this start of the machine; empty: it does not tell. Read once per process.
[[nodiscard]] const std::string& boot_id();

/// This machine's name.
[[nodiscard]] std::string host_name();

/// Nanoseconds since 1970.
[[nodiscard]] std::int64_t unix_ns();
[[nodiscard]] inline std::int64_t unix_ns(const timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace iosig
