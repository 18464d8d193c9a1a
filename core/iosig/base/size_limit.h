// RLIMIT_FSIZE of this process: how far a file may grow. The kernel sends SIGXFSZ, which ends the program, to a thread
// that writes behind it; so files of ours that grow on behalf of a program are checked first.
#pragma once

#include <atomic>
#include <cstdint>

namespace iosig {

namespace detail {
/// The limit as it was read last; 0: not yet.
inline std::atomic<std::int64_t> known_size_limit{0};
[[nodiscard]] bool exceeds_size_limit_now(std::int64_t end);
}  // namespace detail

/// Whether a file may not end at `end`. Costs a load and a comparison while there is no limit. A limit that was lifted
/// is noticed; for one that was set, call read_size_limit().
[[nodiscard]] inline bool exceeds_size_limit(std::int64_t end) {
  return end > detail::known_size_limit.load(std::memory_order_relaxed) && detail::exceeds_size_limit_now(end);
}

/// Whether there may be one.
[[nodiscard]] inline bool has_size_limit() {
  return detail::known_size_limit.load(std::memory_order_relaxed) != INT64_MAX;
}

/// Asks the kernel anew. The limit in bytes, INT64_MAX: none.
std::int64_t read_size_limit();

}  // namespace iosig
