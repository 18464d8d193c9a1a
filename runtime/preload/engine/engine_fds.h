// The descriptors that the engine keeps open in the program's process. The program may not close or replace them. After
// fork() the child, which reinitializes its engine, closes them.
#pragma once

#include <linux/close_range.h>
#include <sys/single_threaded.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace iosig::preload {

/// Descriptors from this number on are not recorded.
inline constexpr unsigned max_fds = 1u << 16;

class EngineFds {
 public:
  void add(int fd) {
    if (static_cast<unsigned>(fd) < max_fds) word(fd).fetch_or(bit(fd), std::memory_order_relaxed);
  }
  void remove(int fd) {
    if (static_cast<unsigned>(fd) < max_fds) word(fd).fetch_and(~bit(fd), std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(int fd) const {
    return static_cast<unsigned>(fd) < max_fds &&
           (words_[static_cast<unsigned>(fd) / 64].load(std::memory_order_relaxed) & bit(fd)) != 0;
  }
  /// Calls visit(descriptor) for each descriptor in ascending order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (unsigned n = 0; n < words_.size(); ++n)
      for (std::uint64_t rest = words_[n].load(std::memory_order_relaxed); rest != 0; rest &= rest - 1)
        visit(static_cast<int>(64 * n + static_cast<unsigned>(std::countr_zero(rest))));
  }

 private:
  static std::uint64_t bit(int fd) { return std::uint64_t{1} << (static_cast<unsigned>(fd) % 64); }
  std::atomic<std::uint64_t>& word(int fd) { return words_[static_cast<unsigned>(fd) / 64]; }
  std::array<std::atomic<std::uint64_t>, max_fds / 64> words_{};
};

inline constinit EngineFds engine_fds;

/// Whether this thread has left the process's table of descriptors (core/iosig/prefetch/own_file.h): its numbers are
/// none of the process's.
extern constinit thread_local bool has_own_descriptors __attribute__((tls_model("initial-exec")));

/// Whether close_range(2) with these flags gives the calling thread a table of descriptors of its own, which the other
/// threads do not share: what it closes there stays open in the process.
[[nodiscard]] inline bool leaves_table_of_process(int flags) {
  return (flags & CLOSE_RANGE_UNSHARE) != 0 && __libc_single_threaded == 0;
}

/// Returns the smallest number that the engine uses for its descriptors.
int min_engine_fd();

/// Duplicates an open descriptor to a large number, close-on-exec. Returns -1 with errno if none is free.
int duplicate_for_engine(int fd);

/// Moves an open descriptor to a large number and sets close-on-exec. Returns the new number. Returns -1 for -1.
int keep_for_engine(int fd);

}  // namespace iosig::preload
