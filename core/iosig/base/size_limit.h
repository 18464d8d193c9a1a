// RLIMIT_FSIZE of this process: the maximum file size. The kernel sends SIGXFSZ, which terminates the program, to a
// thread that writes beyond it. Our own files that grow on behalf of a program are therefore checked first.
#pragma once

#include <atomic>
#include <cstdint>

namespace iosig {

namespace detail {
/// The limit as last read; 0: not read yet.
inline std::atomic<std::int64_t> known_size_limit{0};
[[nodiscard]] bool exceeds_size_limit_now(std::int64_t end);
}  // namespace detail

/// Returns whether a file must not end at `end`. Costs one load and one comparison while there is no limit. Notices a
/// raised limit; after a limit was lowered, read_size_limit() must be called.
[[nodiscard]] inline bool exceeds_size_limit(std::int64_t end) {
  return end > detail::known_size_limit.load(std::memory_order_relaxed) && detail::exceeds_size_limit_now(end);
}

/// Returns whether there may be a limit.
[[nodiscard]] inline bool has_size_limit() {
  return detail::known_size_limit.load(std::memory_order_relaxed) != INT64_MAX;
}

/// Reads the limit from the kernel. Returns it in bytes; INT64_MAX: none.
std::int64_t read_size_limit();

}  // namespace iosig
